"""The pods of a revision as one gateway process sees them: who gets the next request, and who waits for a pod.

Requests are given to the less busy of two pods chosen at random. With a limit of concurrent requests per pod they wait
their turn; without any pod they wait for the first, which is reported to the autoscaler at once. While the control
plane reports that the pods of a revision fail for good, its requests are answered with the reason instead.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from paddlecloud.kube.backoff import exponential
from paddlecloud.local.knative.gateway.slots import Slots
from paddlecloud.local.knative.gateway.stats import Stats

if TYPE_CHECKING:
    from paddlecloud.local.knative.gateway.exchange import Exchange
    from paddlecloud.local.knative.gateway.upstream import Upstream

DEFAULT_TIMEOUT = 300.0
MOST_WAITING = 10_000
"""Requests that one process keeps for a revision without pods."""
IDLE = 1.5
"""Seconds a connection to a pod is kept without a request: less than any common server waits before it closes its end,
so that a request is not sent into a connection that is being closed."""
REST, LONGEST_REST = 0.05, 1.0
"""Seconds a pod that refused a connection is left alone, doubled each time."""

PodId = tuple[str, int, str]


class Backend:
    """One pod."""

    __slots__ = ("_failures", "active", "address", "gone", "idle", "resting", "revision", "slots")

    def __init__(self, revision: Revision, ip: str, port: int, slots: str | None) -> None:
        self.revision = revision
        self.address = (ip, port)
        self.idle: list[Upstream] = []
        self.active = 0
        self.gone = False
        self.resting = 0.0
        self._failures = 0
        self.slots = Slots(slots) if slots else None

    def refused(self, now: float) -> None:
        """A connection could not be made."""
        self.resting = now + exponential(self._failures, base=REST, cap=LONGEST_REST)
        self._failures += 1

    def answered(self) -> None:
        self._failures = 0
        self.resting = 0.0

    def give_back(self) -> None:
        """A request is done with this pod."""
        self.active -= 1
        if self.slots is not None:
            self.slots.give()
            if self.gone and self.active == 0:
                self.slots.close()

    def retire(self) -> None:
        """No more requests; those in progress go on."""
        self.gone = True
        for connection in self.idle:
            connection.close()
        self.idle.clear()
        if self.slots is not None and self.active == 0:
            self.slots.close()
        elif self.slots is not None:
            self.slots.call_when_free(None)


class Revision:
    def __init__(self, key: str, *, clock: Callable[[], float], wake: Callable[[str], None]) -> None:
        self.key = key
        self.stats = Stats(clock())
        self.timeout = DEFAULT_TIMEOUT
        self.waiting: deque[Exchange] = deque()
        self._clock = clock
        self._wake = wake
        self.h2c = False
        """Whether its port serves HTTP/2, as the name of the port says."""
        self._limit = 0
        self._failure = ""
        """Why no pod will become ready; empty while one is or may become so."""
        self._backends: dict[PodId, Backend] = {}
        self._list: list[Backend] = []
        self._later: asyncio.TimerHandle | None = None

    def update(self, entry: dict[str, Any]) -> None:
        """Follow the control plane's word on pods and limits."""
        self.timeout = float(entry.get("timeout") or DEFAULT_TIMEOUT)
        self._limit = int(entry.get("limit") or 0)
        self._failure = str(entry.get("failed") or "")
        self.h2c = bool(entry.get("h2c"))
        wanted: dict[PodId, Backend] = {}
        for ip, port, uid, slots in entry.get("pods") or ():
            identity = (ip, port, f"{uid} {slots}")
            wanted[identity] = self._backends.get(identity) or Backend(self, ip, port, slots)
        for identity, backend in self._backends.items():
            if identity not in wanted:
                backend.retire()
        self._backends = wanted
        self._list = list(wanted.values())
        self.dispatch()
        if self._is_failed:
            self._refuse_waiting(self._failure)

    def enter(self, exchange: Exchange) -> None:
        """A request has come: on to a pod, or into the queue."""
        self.stats.enter(exchange.began)
        backend = None if self.waiting else self._pick(exchange.began)
        if backend is not None:
            backend.active += 1
            exchange.go(backend)
            return
        if self._is_failed:
            exchange.refuse(503, self._failure)
            return
        if len(self.waiting) >= self._most_waiting():
            exchange.refuse(503, "too many requests wait for this revision", retry_after=1)
            return
        self.waiting.append(exchange)
        if not self._list:
            self._wake(self.key)
        self._listen()

    def again(self, exchange: Exchange) -> None:
        """A request that could not be delivered goes to the head of the queue."""
        if self._is_failed:
            exchange.refuse(503, self._failure)
            return
        self.waiting.appendleft(exchange)
        self.dispatch()

    def dispatch(self) -> None:
        while self.waiting:
            if self.waiting[0].over:
                self.waiting.popleft()
                continue
            backend = self._pick(self._clock())
            if backend is None:
                break
            backend.active += 1
            self.waiting.popleft().go(backend)
        self._listen()

    def sweep(self, now: float) -> None:
        """Let go of connections that nobody has used for a while."""
        for backend in self._list:
            for connection in [found for found in backend.idle if now - found.since > IDLE]:
                backend.idle.remove(connection)
                connection.close()

    def abandon(self) -> None:
        """The revision is gone."""
        for backend in self._list:
            backend.retire()
        self._backends, self._list = {}, []
        self._refuse_waiting("the revision was removed")

    @property
    def _is_failed(self) -> bool:
        return bool(self._failure) and not self._list

    def _refuse_waiting(self, why: str) -> None:
        for exchange in list(self.waiting):
            if not exchange.over:
                exchange.refuse(503, why)
        self.waiting.clear()

    def _pick(self, now: float) -> Backend | None:
        found = self._list
        if not found:
            return None
        if self._limit:
            for backend in sorted(found, key=_busy):
                if backend.resting <= now and backend.slots is not None and backend.slots.take():
                    return backend
            return None
        if len(found) == 1:
            return found[0] if found[0].resting <= now else None
        one, other = random.sample(found, 2)  # chosen often, secret never
        chosen = one if one.active <= other.active else other
        if chosen.resting <= now:
            return chosen
        awake = [backend for backend in found if backend.resting <= now]
        return min(awake, key=_busy) if awake else None

    def _most_waiting(self) -> int:
        return max(100, 10 * self._limit * len(self._list)) if self._limit and self._list else MOST_WAITING

    def _listen(self) -> None:
        """While requests wait for pods that exist, dispatch as soon as a place becomes free or a rest ends."""
        waits = bool(self.waiting)
        if self._limit:
            for backend in self._list:
                if backend.slots is not None:
                    backend.slots.call_when_free(self.dispatch if waits else None)
        if self._later is not None:
            self._later.cancel()
            self._later = None
        now = self._clock()
        rests = [backend.resting for backend in self._list if backend.resting > now]
        if waits and rests:
            self._later = asyncio.get_running_loop().call_later(min(rests) - now + 0.001, self.dispatch)


def _busy(backend: Backend) -> int:
    return backend.active
