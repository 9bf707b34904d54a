"""The queues there are, and what the placed pods of each take, its sub-queues not counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.state.shape import Resources, add, subtract
from paddlecloud.local.scheduler.state.snapshot import Pod, Queue, queue_view


class QueueUse:
    """`queue_of` says for which queue a pod counts, `placed` gives all pods that have a node."""

    def __init__(self, queue_of: Callable[[Pod], str], placed: Callable[[], Iterable[Pod]]) -> None:
        self.queues: dict[str, Queue] = {}
        self._queue_of = queue_of
        self._placed = placed
        self._allocated: dict[str, Resources] | None = {}  # None: to be counted anew

    def allocated(self) -> Mapping[str, Resources]:
        if self._allocated is None:
            fresh: dict[str, Resources] = {}
            for pod in self._placed():
                queue = self._queue_of(pod)
                fresh[queue] = add(fresh.get(queue, {}), pod.requests)
            self._allocated = fresh
        return self._allocated

    def put(self, pod: Pod) -> None:
        if self._allocated is not None:
            queue = self._queue_of(pod)
            self._allocated[queue] = add(self._allocated.get(queue, {}), pod.requests)

    def remove(self, pod: Pod) -> None:
        if self._allocated is not None:
            queue = self._queue_of(pod)
            self._allocated[queue] = subtract(self._allocated.get(queue, {}), pod.requests)

    def count_anew(self) -> None:
        """Pods count for other queues than they did."""
        self._allocated = None

    def on_queue(self, old: Object | None, new: Object | None) -> bool:
        """Whether that changed anything for those who wait."""
        if new is None:
            if old is not None:
                self.queues.pop(old["metadata"]["name"], None)
            return True
        view = queue_view(new)
        if self.queues.get(view.name) == view:
            return False  # its status was written
        self.queues[view.name] = view
        return True
