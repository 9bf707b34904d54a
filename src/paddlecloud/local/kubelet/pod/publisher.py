"""Writes the status of one pod to the API: only what changed, and once for a burst of changes."""

from __future__ import annotations

from typing import Any

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import Conflict, NotFound
from paddlecloud.kube.resource import PODS, Object

SETTLE = 0.25
"""Seconds for which a pod that is merely being created is not yet worth a write: most are running by then."""

QUIET_REASONS = frozenset(("ContainerCreating", "PodInitializing"))


class PodGone(Exception):
    """The object of this uid no longer exists."""


class StatusPublisher:
    def __init__(self, client: Client, *, first_seen: float) -> None:
        self._client = client
        self._settled_at = first_seen + SETTLE
        self._last: Object | None = None

    async def publish(self, pod: Object, status: Object, *, now: float) -> float | None:
        """Write the status if it changed; returns when to try again with one that is held back.

        Raises `PodGone`.
        """
        status = with_removals(status)
        if status == self._last or includes(pod.get("status") or {}, status):
            return None
        if is_quiet(status) and now < self._settled_at:
            return self._settled_at
        meta = pod["metadata"]
        body = {"metadata": {"uid": meta["uid"]}, "status": status}
        try:
            await self._client.patch(
                PODS, meta["name"], body, namespace=meta["namespace"], kind="strategic", subresource="status"
            )
        except NotFound as error:
            raise PodGone from error
        except Conflict:
            await self._check_identity(pod)
            raise
        self._last = status
        return None

    async def remove(self, pod: Object) -> None:
        """Delete the object for good: its pod is over."""
        meta = pod["metadata"]
        try:
            await self._client.delete(PODS, meta["name"], namespace=meta["namespace"], grace_period=0, uid=meta["uid"])
        except (NotFound, Conflict):
            pass  # gone already, or a newer pod has the name

    async def _check_identity(self, pod: Object) -> None:
        """A conflict may mean that a new pod has the name. Ending a pod for less would be a grave mistake."""
        meta = pod["metadata"]
        try:
            current = await self._client.get(PODS, meta["name"], meta["namespace"])
        except NotFound as error:
            raise PodGone from error
        if current["metadata"]["uid"] != meta["uid"]:
            raise PodGone


def with_removals(status: Object) -> Object:
    """The status as a patch: a condition that gives no reason or message loses the one it had.

    Conditions are merged by type, so a field that is left out would stay, as ContainersNotReady of a pod that is ready.
    """
    conditions = [{"reason": None, "message": None, **condition} for condition in status.get("conditions") or ()]
    return {**status, "conditions": conditions}


def is_quiet(status: Object) -> bool:
    """Nothing but a pod on its way."""
    if status["phase"] != "Pending":
        return False
    for container in (*status.get("initContainerStatuses", ()), *status["containerStatuses"]):
        waiting = container["state"].get("waiting")
        if waiting is None or waiting["reason"] not in QUIET_REASONS or waiting.get("message"):
            return False
    return True


def includes(whole: Any, part: Any) -> bool:
    """Whether writing `part` over `whole` would change nothing."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(
            key not in whole if value is None else key in whole and includes(whole[key], value)
            for key, value in part.items()
        )
    if isinstance(part, list) and isinstance(whole, list):
        return len(whole) == len(part) and all(map(includes, whole, part))
    return bool(whole == part)
