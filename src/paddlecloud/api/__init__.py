"""The kinds of this project, each declared once: fields, defaults, validation, columns. CRDs are made from them.

This package depends on nothing else of the project and on no server. `KINDS` and its kin are loaded when first used, so
importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paddlecloud.api.catalogue import EMBEDDED_KINDS as EMBEDDED_KINDS
    from paddlecloud.api.catalogue import FOREIGN_KINDS as FOREIGN_KINDS
    from paddlecloud.api.catalogue import KINDS as KINDS

_LAZY = ("KINDS", "FOREIGN_KINDS", "EMBEDDED_KINDS")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from paddlecloud.api import catalogue

        return getattr(catalogue, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
