"""What an informer knows: the newest state of every object, found by key or by index.

Objects are shared by all readers and never copied, so they are immutable by agreement: who wants to change one makes a
copy first. The cache does no I/O and no waiting; it decides which of two states of an object is the newer one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paddlecloud.kube.resource import Key, Object, controller_of, key_of

log = logging.getLogger(__name__)

Indexer = Callable[[Object], Iterable[str]]
"""The values an object is found under; none leaves it out of the index. Must be pure."""

Objects = list[Object]


class Change(NamedTuple):
    """`old` is None for a new object, `new` is None for one that is gone."""

    old: Object | None
    new: Object | None


class Cache:
    """Invariants
    - every object is in each index under exactly the values its indexer gives, and no empty index entry is kept;
    - a state is replaced only by a newer one (by resourceVersion), whatever order events arrive in and however often:
      what is at or below `_floor` is already accounted for, and `_graves` keeps the deletions above it.
    """

    def __init__(self, indexers: Mapping[str, Indexer] | None = None) -> None:
        self._objects: dict[Key, Object] = {}
        self._indexers: dict[str, Indexer] = {}
        self._indexes: dict[str, dict[str, dict[Key, None]]] = {}  # index → value → keys, in order of arrival
        self._floor = 0  # a list or bookmark of this version covers everything up to it
        self._graves: dict[Key, int] = {}  # deleted above the floor: version of the deletion
        for name, indexer in (indexers or {}).items():
            self.add_index(name, indexer)

    # Reading

    def get(self, key: Key) -> Object | None:
        return self._objects.get(key)

    def list(self, namespace: str | None = None) -> Objects:
        if namespace is None:
            return [*self._objects.values()]
        return [obj for key, obj in self._objects.items() if key.namespace == namespace]

    def by_index(self, index: str, value: str) -> Objects:
        """Objects found under `value`. An index nobody added is a mistake and raises KeyError."""
        return [self._objects[key] for key in self._indexes[index].get(value, ())]

    def values(self, index: str) -> Sequence[str]:
        """Every value of an index that has at least one object."""
        return [*self._indexes[index]]

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._objects)

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def add_index(self, name: str, indexer: Indexer) -> None:
        """Also fills the index from what is cached already; adding the same one twice changes nothing."""
        if self._indexers.get(name) is indexer:
            return
        if name in self._indexers:
            raise ValueError(f"index {name!r} exists with another indexer; choose another name")
        self._indexers[name] = indexer
        index: dict[str, dict[Key, None]] = {}
        self._indexes[name] = index
        for key, obj in self._objects.items():
            for value in _values(name, indexer, obj):
                index.setdefault(value, {})[key] = None

    # Writing: for informers

    def upsert(self, obj: Object) -> Change | None:
        """Take an added or modified object; None when something as new is known already."""
        key, version = key_of(obj), version_of(obj)
        old = self._objects.get(key)
        if version is not None and (version <= self._newest(key, old)):
            return None
        self._graves.pop(key, None)
        self._put(key, old, obj)
        return Change(old, obj)

    def remove(self, obj: Object) -> Change | None:
        """Take a deletion; `obj` is the last state, carrying the version of its deletion."""
        key, version = key_of(obj), version_of(obj)
        old = self._objects.get(key)
        if version is not None:
            if version <= self._newest(key, old):
                return None
            self._graves[key] = version
        if old is None:
            return None
        self._drop(key, old)
        return Change(old, None)

    def replace(self, items: Iterable[Object], resource_version: str) -> Sequence[Change]:
        """Take a complete list: what it does not hold is gone, whatever was missed meanwhile.

        The list is the truth even where its versions are lower: that is how a server restored from a backup looks.
        """
        changes: list[Change] = []
        fresh = {key_of(obj): obj for obj in items}
        for key in [key for key in self._objects if key not in fresh]:
            old = self._objects[key]
            self._drop(key, old)
            changes.append(Change(old, None))
        for key, obj in fresh.items():
            known = self._objects.get(key)
            if known is None or not _same_state(known, obj):
                self._put(key, known, obj)
                changes.append(Change(known, obj))
        self._floor = _number(resource_version) or 0
        self._graves.clear()
        return changes

    def bookmark(self, resource_version: str) -> None:
        """Every change up to here has been delivered: older ones are stale, and deletions so old need no memory."""
        version = _number(resource_version)
        if version is not None and version > self._floor:
            self._floor = version
            self._graves = {key: grave for key, grave in self._graves.items() if grave > version}

    def _newest(self, key: Key, old: Object | None) -> int:
        known = version_of(old) if old is not None else self._graves.get(key)
        return max(self._floor, known or 0)

    def _put(self, key: Key, old: Object | None, new: Object) -> None:
        self._objects[key] = new
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            before = _values(name, indexer, old) if old is not None else frozenset()
            after = _values(name, indexer, new)
            for value in before - after:
                _unlink(index, value, key)
            for value in after - before:
                index.setdefault(value, {})[key] = None

    def _drop(self, key: Key, old: Object) -> None:
        del self._objects[key]
        for name, indexer in self._indexers.items():
            for value in _values(name, indexer, old):
                _unlink(self._indexes[name], value, key)


def _values(name: str, indexer: Indexer, obj: Object) -> frozenset[str]:
    """None for an object that the indexer cannot read: fields without a schema hold what their author likes, and one
    object must not cost the others their place in the cache."""
    try:
        return frozenset(indexer(obj))
    except Exception as error:
        log.warning("%s %s is left out of index %s: %r", obj.get("kind"), key_of(obj), name, error)
        return frozenset()


def version_of(obj: Object) -> int | None:
    """resourceVersion as a number. By contract it is opaque; in practice, and since Kubernetes 1.35 by promise, it is
    an integer that grows. None for a server that does otherwise: its events are then believed in order of arrival."""
    return _number(obj["metadata"].get("resourceVersion"))


def by_owner(obj: Object) -> Iterable[str]:
    """Index by the controlling owner, as `owned_by` names it.

    Owners are of the object's own namespace: a reference with the uid of another namespace's is nobody's. Everybody may
    write one who knows that uid.
    """
    owner = controller_of(obj)
    return (_in_namespace(obj, owner["uid"]),) if owner else ()


def owned_by(owner: Object) -> str:
    """The value of the index `by_owner` under which is what an object controls."""
    return _in_namespace(owner, owner["metadata"]["uid"])


def by_label(label: str) -> Indexer:
    """Index by the value of one label."""

    def values(obj: Object) -> Iterable[str]:
        value = obj["metadata"].get("labels", {}).get(label)
        return () if value is None else (value,)

    return values


def by_field(path: str) -> Indexer:
    """Index by a scalar such as `spec.nodeName`; objects without it are left out."""
    steps = path.split(".")

    def values(obj: Object) -> Iterable[str]:
        value: Any = obj
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return () if value is None else (str(value),)

    return values


def _in_namespace(obj: Object, uid: str) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{uid}"


def _number(version: str | None) -> int | None:
    return int(version) if version and version.isdecimal() else None


def _same_state(known: Object, obj: Object) -> bool:
    """A version is unique to one write, but a server restored from a backup gives it out again: ask the uid too."""
    a, b = known["metadata"], obj["metadata"]
    version = b.get("resourceVersion")
    return version is not None and a.get("resourceVersion") == version and a.get("uid") == b.get("uid")


def _unlink(index: dict[str, dict[Key, None]], value: str, key: Key) -> None:
    keys = index[value]
    del keys[key]
    if not keys:
        del index[value]
