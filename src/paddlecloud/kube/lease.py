"""Leader election on a coordination.k8s.io Lease: of several replicas one leads, another takes over when it is gone.

How long others have been silent is measured by our own clock from the moment we saw their last renewal, so clocks of
different machines need not agree. The lease lasts `duration`; a leader that could not renew for `deadline` stops,
and its fence has closed by then. The difference between the two is what a write already under way may take.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, SystemClock, rfc3339_micro
from paddlecloud.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from paddlecloud.kube.fence import Fence
from paddlecloud.kube.resource import LEASES, Object

log = logging.getLogger(__name__)

T = TypeVar("T")


class LeadershipLost(Exception):
    """Somebody else may lead by now. Everything in memory is suspect: end the process and start afresh."""


class Elector:
    """`client` must not be fenced itself: it is how the fence gets opened."""

    def __init__(
        self,
        client: Client,
        *,
        name: str,
        namespace: str,
        identity: str,
        fence: Fence | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        duration: float = 15.0,
        deadline: float = 10.0,
        retry: float = 2.0,
    ) -> None:
        if not retry < deadline < duration:
            raise ValueError("a lease needs retry < deadline < duration, or leaders overlap")
        self.name = name
        self.namespace = namespace
        self.identity = identity
        self._client = client
        self._clock = clock or SystemClock()
        self.fence = fence or Fence(self._clock)
        self._rng = rng or random.Random()  # noqa: S311 - spreads load, keeps no secret
        self._duration = duration
        self._deadline = deadline
        self._retry = retry
        self._lease: Object | None = None  # as last seen or written
        self._seen = 0.0  # when its holder last showed a sign of life, by our clock

    @property
    def is_leader(self) -> bool:
        return self.fence.is_open

    @property
    def leader(self) -> str:
        """Who holds the lease as far as we know."""
        return _holder(self._lease)

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait to become leader, then run `lead` while we are; returns when it does, giving the lease back.

        Raises `LeadershipLost` after `lead` was cancelled because the lease could not be kept.
        """
        try:
            await self._acquire()
            log.info("%s leads as %s", self.identity, self.name)
            leading = asyncio.ensure_future(lead())
            keeping = asyncio.ensure_future(self._keep())
            try:
                await asyncio.wait({leading, keeping}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (leading, keeping):  # the lease is kept until what it protects has ended
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
        finally:
            await self._release()
        if leading.cancelled():
            raise LeadershipLost(f"{self.identity} could not keep the lease {self.namespace}/{self.name}")
        leading.result()

    async def _acquire(self) -> None:
        while not await self._bounded(self._try(), self._deadline):
            await self._clock.sleep(self._retry * (1.0 + 0.2 * self._rng.random()))

    async def _keep(self) -> None:
        """Renew until that has failed for the whole deadline."""
        expires = self._clock.monotonic() + self._deadline
        while True:
            await self._clock.sleep(min(self._retry, max(0.0, expires - self._clock.monotonic())))
            started = self._clock.monotonic()
            if started >= expires:
                break
            if await self._bounded(self._try(), expires - started):
                expires = started + self._deadline
            elif self.leader not in (self.identity, ""):
                break  # taken: waiting any longer is pointless
        self.fence.close()
        log.error("%s lost the lease %s/%s to %r", self.identity, self.namespace, self.name, self.leader)

    async def _try(self) -> bool:
        """Take or renew the lease, if it is free or ours. The fence opens from before the request left."""
        started = self._clock.monotonic()
        try:
            if not await self._write():
                return False
        except (Conflict, AlreadyExists):
            self._lease = None  # somebody was faster; look again next time
            return False
        except ApiError as error:
            log.warning("lease %s/%s: %s", self.namespace, self.name, error)
            return False
        self.fence.open_for(self._deadline - (self._clock.monotonic() - started))
        return True

    async def _write(self) -> bool:
        if self._lease is None or _holder(self._lease) != self.identity:
            if not await self._look():
                self._see(await self._client.create(LEASES, self._claimed(None)))
                return True
            if self._held_by_other():
                return False
        self._see(await self._client.update(LEASES, self._claimed(self._lease)))
        return True

    async def _look(self) -> bool:
        """Read the lease; False when there is none."""
        try:
            found = await self._client.get(LEASES, self.name, self.namespace)
        except NotFound:
            return False
        known = (self._lease or {}).get("metadata", {}).get("resourceVersion")
        if known != found["metadata"]["resourceVersion"]:
            self._see(found)
        return True

    def _held_by_other(self) -> bool:
        assert self._lease is not None
        spec = self._lease["spec"]
        if _holder(self._lease) in ("", self.identity):
            return False
        return self._clock.monotonic() < self._seen + float(spec.get("leaseDurationSeconds") or self._duration)

    def _see(self, lease: Object) -> None:
        self._lease = lease
        self._seen = self._clock.monotonic()

    def _claimed(self, lease: Object | None) -> Object:
        """The lease as it should be with us as holder."""
        now = rfc3339_micro(self._clock.now())
        old = lease["spec"] if lease else {}
        spec = {
            **old,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, round(self._duration)),
            "renewTime": now,
        }
        if old.get("holderIdentity") != self.identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(old.get("leaseTransitions") or 0) + (1 if lease else 0)
        metadata = lease["metadata"] if lease else {"name": self.name, "namespace": self.namespace}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}

    async def _release(self) -> None:
        """Give the lease back so that the next leader need not wait for it to run out."""
        held = self.fence.is_open
        self.fence.close()
        if not held or self._lease is None:
            return
        try:
            await self._bounded(self._give_back(self._lease), self._duration - self._deadline)
        except ApiError as error:
            log.info("the lease %s/%s was not given back, it will run out: %s", self.namespace, self.name, error)

    async def _give_back(self, lease: Object) -> None:
        try:
            await self._client.update(LEASES, self._vacated(lease))
        except Conflict:  # a renewal we cancelled was carried out after all
            lease = await self._client.get(LEASES, self.name, self.namespace)
            if _holder(lease) == self.identity:
                await self._client.update(LEASES, self._vacated(lease))

    def _vacated(self, lease: Object) -> Object:
        vacated = self._claimed(lease)
        vacated["spec"].update(holderIdentity="", leaseDurationSeconds=1)
        return vacated

    async def _bounded(self, work: Coroutine[Any, Any, T], seconds: float) -> T | None:
        """The result, or None when it took too long: a request that hangs must not outlive the lease."""
        task = asyncio.ensure_future(work)
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            task.cancel()
            timer.cancel()


def _holder(lease: Object | None) -> str:
    return str((lease or {}).get("spec", {}).get("holderIdentity") or "")
