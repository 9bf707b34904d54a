"""Ids that clients see: the object's own, with its namespace in front where that is not the server's default one.

kfp asks for a run by its id alone. The server acts with the caller's rights and keeps nothing, so it can neither look
into all namespaces nor remember where a run was created: the id says it. RBAC decides if the caller may read it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from paddlecloud.pipelines.api.replies import RequestRefused

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OWN = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_]{0,61}[A-Za-z0-9])?")


class Identifier(NamedTuple):
    namespace: str
    own: str


def shown(namespace: str, own: str, default: str) -> str:
    return own if namespace == default or not own else f"{namespace}.{own}"


def read(text: str, default: str, what: str = "id") -> Identifier:
    """An id that cannot be one is not found, rather than sent on in a selector."""
    namespace, dot, own = text.rpartition(".")
    if not _OWN.fullmatch(own) or (dot and not _NAMESPACE.fullmatch(namespace)):
        raise RequestRefused(404, f"{what} {text[:100]!r} not found")
    return Identifier(namespace or default, own)


def namespace_named(text: str, default: str) -> str:
    if not text:
        return default
    if not _NAMESPACE.fullmatch(text):
        raise RequestRefused(400, f"namespace {text[:100]!r} is no name of a namespace")
    return text
