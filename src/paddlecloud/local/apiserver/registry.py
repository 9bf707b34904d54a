"""Which kinds the API server serves, and everything it must know about each.

Built-in kinds are a table (`builtin/kinds.py`); custom kinds enter and leave while the server runs, one per CRD
version. The REST layer is driven by this registry alone: no handler knows a kind by name unless Kubernetes gives that
kind its own behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.kube.resource import Object, Resource
from paddlecloud.local.apiserver.objects.conversion import Conversion

Schema = Mapping[str, Any]
"""An OpenAPI v3 structural schema. `{"$ref": "#/components/schemas/NAME"}` points into `KindInfo.definitions`."""

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column: where a table cell comes from. `priority` above zero shows only with `-o wide`."""

    name: str
    type: str
    json_path: str
    priority: int = 0
    format: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """JSON paths of the scale subresource inside the object, without the leading dot: `spec.replicas`."""

    spec_replicas: str
    status_replicas: str
    selector: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class KindInfo:
    resource: Resource
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: frozenset[str] = frozenset()
    schema: Schema | None = None
    definitions: Mapping[str, Schema] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    scale: ScalePaths | None = None
    custom: bool = False
    """Defined by a CRD: pruned and defaulted by its schema, and patched without strategic merge."""
    conversion: Conversion | None = None
    """Set where objects are stored in another form than the one shown here."""
    complete: Callable[[Object], None] | None = None
    """Prunes and defaults a stored object in place; for objects up to the revision `since`, see there."""
    since: int = 0
    """The revision at which the schema became what it is: what was stored before may lack its defaults."""

    @property
    def collection(self) -> str:
        """Where the store keeps the objects."""
        if self.conversion is not None:
            return self.conversion.collection
        return f"{self.resource.group}/{self.resource.plural}"

    def shows_as_stored(self, rev: int) -> bool:
        """Whether an object of this revision is shown just as it is stored."""
        return self.conversion is None and (self.complete is None or rev > self.since)

    def shown(self, stored: Object, rev: int) -> Object:
        """An object that was stored at a revision, in the form of this kind. It may be changed in place."""
        whole = self.completed(stored, rev)
        return whole if self.conversion is None else self.conversion.outward(whole)

    def completed(self, stored: Object, rev: int) -> Object:
        """The same object, still in the form it is stored in, as today's schema has it."""
        if self.complete is not None and rev <= self.since:
            self.complete(stored)
        return stored

    def stored(self, shown: Object) -> Object:
        """An object of this kind in the form it is stored in; both share their metadata."""
        return shown if self.conversion is None else self.conversion.inward(shown)

    @property
    def kind(self) -> str:
        return self.resource.kind

    @property
    def list_kind(self) -> str:
        return f"{self.resource.kind}List"

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


class Registry:
    """The kinds served now. Look-ups are by (group, version, plural)."""

    def __init__(self, kinds: Iterable[KindInfo] = ()) -> None:
        self._kinds: dict[tuple[str, str, str], KindInfo] = {}
        self.generation = 0  # counts changes, so that discovery and OpenAPI documents can be cached
        for kind in kinds:
            self.add(kind)

    def add(self, info: KindInfo) -> None:
        resource = info.resource
        self._kinds[(resource.group, resource.version, resource.plural)] = info
        self.generation += 1

    def remove(self, group: str, version: str, plural: str) -> None:
        if self._kinds.pop((group, version, plural), None):
            self.generation += 1

    def find(self, group: str, version: str, plural: str) -> KindInfo | None:
        return self._kinds.get((group, version, plural))

    def by_kind(self, group: str, version: str, kind: str) -> KindInfo | None:
        for info in self._kinds.values():
            if info.resource.group == group and info.resource.version == version and info.kind == kind:
                return info
        return None

    def any_version(self, group: str, plural: str) -> KindInfo | None:
        for (g, _, p), info in self._kinds.items():
            if g == group and p == plural:
                return info
        return None

    def __iter__(self) -> Iterator[KindInfo]:
        return iter(self._kinds.values())

    def group_versions(self) -> dict[str, dict[str, list[KindInfo]]]:
        """Kinds by group and version, in the order they were added."""
        groups: dict[str, dict[str, list[KindInfo]]] = {}
        for info in self._kinds.values():
            groups.setdefault(info.resource.group, {}).setdefault(info.resource.version, []).append(info)
        return groups
