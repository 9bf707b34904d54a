"""The newest committed object at every address, in memory.

A fold over the rows of the log: `take` each in the order of revisions, at the start out of the table and later as they
are committed, and reads answer for the newest of them. It knows no disk, no event loop and no writes in flight.

Invariants
- an object is in `_collections` if and only if the last row taken for its address was no deletion;
- no empty namespace is kept, so a platform that made a million namespaces and deleted them is as small as before;
- `_tombstones` has the deletions that a new object of the same name would follow, until they are compacted away.
"""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import ObjectAddress, Record

Records = list[Record]


class State:
    def __init__(self) -> None:
        self._collections: dict[str, dict[str, dict[str, Record]]] = {}  # collection → namespace → name
        self._tombstones: dict[ObjectAddress, int] = {}

    def get(self, address: ObjectAddress) -> Record | None:
        namespace = self._collections.get(address.collection, {}).get(address.namespace)
        return namespace.get(address.name) if namespace else None

    def list(self, collection: str, namespace: str | None) -> Records:
        """In the order of Kubernetes: by namespace, then name."""
        spaces = self._collections.get(collection, {})
        if namespace is not None:
            return [record for _, record in sorted(spaces.get(namespace, {}).items())]
        return [record for space in sorted(spaces) for _, record in sorted(spaces[space].items())]

    def count(self, collection: str, namespace: str | None) -> int:
        spaces = self._collections.get(collection, {})
        if namespace is not None:
            return len(spaces.get(namespace, ()))
        return sum(len(space) for space in spaces.values())

    def collections(self) -> Iterable[str]:
        return tuple(self._collections)

    def tombstone(self, address: ObjectAddress) -> int:
        """The revision at which what was last here was deleted; 0 if nothing was, or nobody remembers."""
        return self._tombstones.get(address, 0)

    def take(self, op: Op, record: Record) -> Record | None:
        """Take the next committed row; returns what was there before."""
        address = record.address
        names = self._collections.setdefault(address.collection, {}).setdefault(address.namespace, {})
        if op is Op.DELETE:
            self._tombstones[address] = record.rev
            previous = names.pop(address.name, None)
            if not names:
                del self._collections[address.collection][address.namespace]
            return previous
        self._tombstones.pop(address, None)
        previous = names.get(address.name)
        names[address.name] = record
        return previous

    def forget(self, upto: int) -> None:
        """History up to `upto` was compacted, its deletions with it."""
        for address in [address for address, rev in self._tombstones.items() if rev <= upto]:
            del self._tombstones[address]
