"""Scalars that jobs wrote with VisualDL, for one viewer: read in the job's pod, with the viewer's rights, and kept.

Pages do not wait for it: they show what was read last, and are drawn anew when more is there. Of a job that runs it is
read again while somebody looks. Of one without a running pod it takes a pod that is made for it: only a form asks for
that (`read`), never a visit.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.kube.clock import Clock
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import Object
from paddlecloud.sdk import metrics
from paddlecloud.sdk.core import AsyncClient
from paddlecloud.sdk.outcome import ending
from paddlecloud.ui.curves import Points, Series, thinned
from paddlecloud.ui.feed import Dependency, Feed
from paddlecloud.ui.sessions import Identity

READ = "curves"
"""Kind of the dependency on what was read of a job."""
AGAIN_SECONDS, AGAIN_MOST = 15.0, 300.0
"""Between two readings of a job that runs. The wait grows while nothing is found, and with the time that one takes."""
SHARE = 20
MOST_BYTES = 4 << 20
"""Of what a pod prints."""
MOST_JOBS, MOST_CURVES, AT_ONCE = 32, 64, 2


class Reading(NamedTuple):
    runs: Mapping[str, Series]
    """By the folder that the program wrote them into."""
    problem: str
    ended: bool
    """Whether the job had ended: then there will be no more."""
    next_at: float
    wait: float


class CurveReader:
    """Of one viewer."""

    def __init__(self, identity: Identity, feed: Feed, clock: Clock) -> None:
        self._identity, self._feed, self._clock = identity, feed, clock
        self._kept: OrderedDict[str, Reading] = OrderedDict()
        self._open: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    def found(self, job: Object) -> Reading | None:
        return self._kept.get(_uid(job))

    def is_reading(self, job: Object) -> bool:
        return _uid(job) in self._open

    def dependency(self, job: Object) -> Dependency:
        return Dependency(READ, str(job["metadata"].get("namespace", "")), _uid(job))

    def follow(self, job: Object) -> None:
        """While a page of it is open: read it again when that is due, if it runs."""
        kept = self.found(job)
        if ending(job) is None and (kept is None or self._clock.monotonic() >= kept.next_at):
            self._begin(job, makes_pod=False)

    def read(self, job: Object) -> None:
        """Now, in a pod that is made for it where none runs."""
        self._begin(job, makes_pod=True)

    def _begin(self, job: Object, *, makes_pod: bool) -> None:
        uid = _uid(job)
        if uid not in self._open and len(self._open) < MOST_JOBS:
            self._open[uid] = asyncio.create_task(self._read(job, makes_pod=makes_pod), name="read curves")

    async def _read(self, job: Object, *, makes_pod: bool) -> None:
        uid = _uid(job)
        try:
            async with self._slots:
                began = self._clock.monotonic()
                runs, problem = await self._ask(job, makes_pod=makes_pod)
                took = self._clock.monotonic() - began
            before = self._kept.get(uid)
            if problem and not runs and before is not None:
                runs = before.runs  # the pod has gone meanwhile
            wait = AGAIN_SECONDS if runs else min(AGAIN_MOST, 2 * before.wait if before else AGAIN_SECONDS)
            wait = max(wait, SHARE * took)
            self._kept[uid] = Reading(runs, problem, ending(job) is not None, self._clock.monotonic() + wait, wait)
            self._kept.move_to_end(uid)
            while len(self._kept) > MOST_JOBS:
                self._kept.popitem(last=False)
        finally:
            del self._open[uid]
            self._feed.wake(self.dependency(job))

    async def _ask(self, job: Object, *, makes_pod: bool) -> tuple[Mapping[str, Series], str]:
        try:
            async with AsyncClient(self._identity.config, namespace=job["metadata"].get("namespace")) as client:
                found = await metrics.read(client, job, [], makes_pod=makes_pod, most=MOST_BYTES)
        except metrics.MetricsError as error:
            return {}, str(error)
        except ApiError as error:
            return {}, error.message
        except (OSError, asyncio.TimeoutError) as error:
            return {}, str(error) or type(error).__name__
        runs: dict[str, dict[str, Points]] = {}
        for one in found[:MOST_CURVES]:
            runs.setdefault(one.run, {})[one.tag] = thinned(Points(one.steps, one.values))
        return runs, "; ".join(found.problems[:3])


def _uid(job: Object) -> str:
    return str(job["metadata"].get("uid"))
