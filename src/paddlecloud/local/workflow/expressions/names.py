"""Which variables an expression names. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from paddlecloud.local.workflow.expressions.tree import Binary, Chain, Literal, Member, Name, Node, children


def names_in(node: Node) -> Iterator[str]:
    """`a` and `a.b.c`; those on the left of `??`, and below `?.`, may be missing and are left out."""
    if isinstance(node, Binary) and node.sign == "??":
        yield from names_in(node.right)
        return
    if isinstance(node, Chain):
        return
    path = _path(node)
    if path:
        yield path
        return
    for child in children(node):
        yield from names_in(child)


def _path(node: Node) -> str:
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Member) and isinstance(node.key, Literal) and isinstance(node.key.value, str):
        before = _path(node.of)
        return f"{before}.{node.key.value}" if before else ""
    return ""
