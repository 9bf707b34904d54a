"""All declared kinds."""

from __future__ import annotations

from paddlecloud.api import paddlejob
from paddlecloud.api.kind import KindDeclaration

KINDS: tuple[KindDeclaration, ...] = (paddlejob.DECLARATION,)
"""The kinds of this project: what is installed on a cluster."""

FOREIGN_KINDS: tuple[KindDeclaration, ...] = ()
"""Kinds of other projects that the embedded platform serves in their place."""

EMBEDDED_KINDS = KINDS + FOREIGN_KINDS
