"""The DaemonSet controller: its caches, what it observes, and what it remembers of pods that failed."""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.kube.cache import owned_by
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.pods import phase_of
from paddlecloud.kube.resource import CONTROLLERREVISIONS, DAEMONSETS, NODES, PODS, Key, Object, key_of
from paddlecloud.local.scheduler.state.snapshot import node_view
from paddlecloud.local.workloads.daemonset.backoff import FailedPodBackoff
from paddlecloud.local.workloads.daemonset.decide import Observed, decide
from paddlecloud.local.workloads.reconciler import ORPHANS, OWNER, WorkloadReconciler


class _Reconciler(WorkloadReconciler[Observed]):
    def __init__(self, manager: Manager, clock: Clock) -> None:
        super().__init__(
            manager,
            DAEMONSETS,
            name="daemonset-controller",
            observe=self._gather,
            decide=decide,
            clock=clock,
            size=lambda observed: len(observed.nodes) + len(observed.pods),
        )
        self._backoff = FailedPodBackoff()
        self._pods = self.owns(PODS)
        self._revisions = self.owns(CONTROLLERREVISIONS)
        self._nodes = self.follows(NODES, map=self._everybody)

    def forget(self, key: Key, uid: str) -> None:
        self._backoff.forget(uid)

    def _everybody(self, node: Object) -> Iterable[Key]:
        """A node that comes, goes or changes may concern every DaemonSet."""
        return [key_of(daemon_set) for daemon_set in self.cache.list()]

    def _gather(self, daemon_set: Object) -> Observed:
        uid, namespace = daemon_set["metadata"]["uid"], daemon_set["metadata"]["namespace"]
        pods = tuple(self._pods.cache.by_index(OWNER, owned_by(daemon_set)))
        failed = [pod for pod in pods if phase_of(pod) == "Failed"]
        return Observed(
            nodes=tuple(map(node_view, self._nodes.cache.list())),
            pods=pods,
            orphans=tuple(self._pods.cache.by_index(ORPHANS, namespace)),
            revisions=tuple(self._revisions.cache.by_index(OWNER, owned_by(daemon_set))),
            loose_revisions=tuple(self._revisions.cache.by_index(ORPHANS, namespace)),
            replaced_at=self._backoff.observe(uid, failed, self.clock.now()),
        )


def daemon_set_controller(manager: Manager, clock: Clock) -> None:
    _Reconciler(manager, clock)
