"""What training programs import: reports of progress (`report`), and files read through the node's cache (`Files`).

Standard library only, and harmless anywhere: outside a pod reports go nowhere and files are read where they lie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paddlecloud.data.files import Files as Files

__all__ = ["Files"]


def __getattr__(name: str) -> object:
    if name == "Files":  # loaded when it is used: most programs only report
        from paddlecloud.data.files import Files

        return Files
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
