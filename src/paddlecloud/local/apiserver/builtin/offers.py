"""What the server itself chose for objects on their way to the store: addresses and ports of Services.

Between the choice and the write of a large object another may get the same. Then the server chooses again; what the
author of the object asked for is refused instead.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from paddlecloud.kube.resource import Object

MOST = 1000
"""Objects that are remembered. Those whose write was refused are never asked for again."""


class Offers:
    def __init__(self) -> None:
        self._by_uid: OrderedDict[str, set[Hashable]] = OrderedDict()

    def note(self, obj: Object, value: Hashable) -> None:
        self._by_uid.setdefault(str(obj["metadata"].get("uid")), set()).add(value)
        while len(self._by_uid) > MOST:
            self._by_uid.popitem(last=False)

    def taken_back(self, obj: Object) -> set[Hashable]:
        """What was chosen for the object; it is asked for once, before the write."""
        return self._by_uid.pop(str(obj["metadata"].get("uid")), set())
