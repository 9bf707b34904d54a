"""Lists of objects of one kind: filtered by namespace, state and words, ordered, and cut into pages. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from paddlecloud.kube.resource import Object
from paddlecloud.ui.listing import Listed, Order, listed, words_of


class ObjectRow(Protocol):
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def phase(self) -> str: ...
    @property
    def text(self) -> str:
        """What a search looks through, in lower case."""
        ...


Row = TypeVar("Row", bound=ObjectRow)


@dataclass(frozen=True)
class ObjectList(Generic[Row]):
    section: str
    listed: Listed[Row]
    phases: list[tuple[str, int]]
    """Every state that objects have, and of how many."""
    namespaces: list[str]
    query: Mapping[str, str]


def object_list(
    section: str, rows: Iterable[Row], query: Mapping[str, str], orders: Mapping[str, Order[Row]], *, default: str
) -> ObjectList[Row]:
    found = [*rows]
    namespaces = sorted({row.namespace for row in found})
    if namespace := query.get("namespace"):
        found = [row for row in found if row.namespace == namespace]
    if words := words_of(query):
        found = [row for row in found if all(word in row.text for word in words)]
    phases = sorted(Counter(row.phase for row in found).items())
    if phase := query.get("status"):
        found = [row for row in found if row.phase == phase]
    shown = listed(found, query, orders, default=default, section=section)
    return ObjectList(section, shown, phases, namespaces, query)


def searched(obj: Object, *more: object) -> str:
    """Name, labels and further texts, for the search."""
    meta = obj["metadata"]
    labels = (f"{key}={value}" for key, value in (meta.get("labels") or {}).items())
    return "\n".join((str(meta["name"]), str(meta.get("namespace", "")), *labels, *map(str, more))).lower()
