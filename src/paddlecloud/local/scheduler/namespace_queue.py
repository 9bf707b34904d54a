"""The queue of gangs that name none: the one that their namespace's annotation names.

As Volcano's admission webhook that mutates PodGroups does: on creation, and only in place of the queue called default.
"""

from __future__ import annotations

from paddlecloud.api.names import QUEUE_NAME
from paddlecloud.kube.resource import NAMESPACES, PODGROUPS, Object
from paddlecloud.local.apiserver.objects.admission import Mutator
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.scheduler.state.snapshot import DEFAULT_QUEUE
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store


def namespace_queue(store: Store) -> Mutator:
    """A mutator."""

    def assign(info: KindInfo, obj: Object, old: Object | None) -> None:
        if info.resource != PODGROUPS or old is not None:
            return
        spec = obj.setdefault("spec", {})
        if not isinstance(spec, dict) or (spec.get("queue") or DEFAULT_QUEUE) != DEFAULT_QUEUE:
            return
        found = store.latest(ObjectAddress(f"/{NAMESPACES.plural}", "", obj["metadata"]["namespace"]))
        queue = ((found.object["metadata"].get("annotations") if found else None) or {}).get(QUEUE_NAME)
        if queue:
            spec["queue"] = queue

    return assign
