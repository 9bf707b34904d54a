"""What keeps containers from starting, and when to try again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from paddlecloud.kube.backoff import exponential
from paddlecloud.local.kubelet.pod.lifecycle import backoff_delay
from paddlecloud.local.kubelet.pod.pod_state import Waiting


class Obstacle(NamedTuple):
    waiting: Waiting
    retry_at: float | None
    """None: only an event (an object created, an image built) can change it."""
    failures: int
    blocks: bool
    """Whether an event before that time is no reason to try."""


def mount_delay(failures: int) -> float:
    """Seconds until a volume is tried again: 0.5, 1, 2, 4, 5. No event reports a folder that somebody makes.

    Kubernetes' kubelet goes on to two minutes, since many pods may share the server that it asks."""
    return exponential(failures - 1, base=0.5, cap=5.0)


def pull_delay(failures: int) -> float:
    return backoff_delay(failures + 1)


class Obstacles:
    """By container. News clears those that wait for it; the rest wait for their time."""

    def __init__(self) -> None:
        self._by_name: dict[str, Obstacle] = {}

    def note(
        self,
        name: str,
        waiting: Waiting,
        *,
        now: float,
        delay: Callable[[int], float] | None = None,
        blocks: bool = False,
    ) -> None:
        """`delay` of the failures so far: try again by the clock. With `blocks` not before; otherwise the next event
        leads to the next attempt."""
        before = self._by_name.get(name)
        failures = before.failures + 1 if before else 1
        retry_at = now + delay(failures) if delay is not None else None
        self._by_name[name] = Obstacle(waiting, retry_at, failures, blocks)

    def clear(self, name: str) -> None:
        self._by_name.pop(name, None)

    def blocking(self, now: float) -> dict[str, Waiting]:
        """Containers that need not be tried now."""
        return {
            name: _backing_off(obstacle)
            for name, obstacle in self._by_name.items()
            if obstacle.blocks and obstacle.retry_at is not None and obstacle.retry_at > now
        }

    def waiting(self) -> dict[str, Waiting]:
        return {name: obstacle.waiting for name, obstacle in self._by_name.items()}

    def next_retry(self, now: float) -> float | None:
        times = [o.retry_at for o in self._by_name.values() if o.retry_at is not None and o.retry_at > now]
        return min(times, default=None)


_BACKOFF_NAMES = {"ErrImagePull": "ImagePullBackOff"}


def _backing_off(obstacle: Obstacle) -> Waiting:
    reason = obstacle.waiting.reason
    return obstacle.waiting._replace(reason=_BACKOFF_NAMES.get(reason, reason))
