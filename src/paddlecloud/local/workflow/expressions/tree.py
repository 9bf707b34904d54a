"""The tree of an expression: what `parser.py` makes of a text and `evaluation.py` evaluates. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Node:
    pass


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: Any


@dataclass(frozen=True, slots=True)
class Name(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Pointer(Node):
    """`#`, `#index`, `#acc`: what a predicate is evaluated for."""

    name: str


@dataclass(frozen=True, slots=True)
class Unary(Node):
    sign: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Member(Node):
    """`of.key` and `of[key]`; `optional` is `?.`."""

    of: Node
    key: Node
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Chain(Node):
    """The whole of `a?.b.c`: it is nil where one of its optional members is asked of nil."""

    of: Node


@dataclass(frozen=True, slots=True)
class Slice(Node):
    of: Node
    start: Node | None
    end: Node | None


@dataclass(frozen=True, slots=True)
class Call(Node):
    function: Node
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Array(Node):
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Map(Node):
    pairs: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True, slots=True)
class Choice(Node):
    """`c ? a : b` and `if c {a} else {b}`."""

    condition: Node
    yes: Node
    no: Node


@dataclass(frozen=True, slots=True)
class Let(Node):
    name: str
    value: Node
    then: Node


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    nodes: tuple[Node, ...]


def children(node: Node) -> Iterator[Node]:
    """The nodes right below one."""
    for field in fields(node):
        yield from _nodes_in(getattr(node, field.name))


def _nodes_in(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _nodes_in(each)
