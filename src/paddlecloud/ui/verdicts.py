"""Why an object is as it is: the verdict of `pdc explain`, by the same functions.

`quick` judges by what the shared watches know, in microseconds, for lists and for the first answer of a page. `examine`
asks the API server what else a verdict rests on, in a thread and with the rights of the viewer; its answer is kept for
seconds, and no longer than until the object, its pods or its events change.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paddlecloud.cli import session as cli
from paddlecloud.cli.objects import outcome
from paddlecloud.cli.objects.api import Api
from paddlecloud.cli.objects.embedded import is_embedded
from paddlecloud.cli.objects.examination import examine
from paddlecloud.cli.objects.why import DELETING, FAILED, OK, WAITING, Verdict, why
from paddlecloud.cli.render.scheduling import scheduling
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.resource import Object
from paddlecloud.kube.stdlib import StdlibTransport
from paddlecloud.ui.sessions import Identity

MOST_KEPT = 256
KEPT_SECONDS = 8.0
"""What others do changes an explanation, too: who frees a node is none of what it is kept by."""
SECONDS = 15.0
"""For one answer of the API server."""


PHASES = {OK: "Ready", WAITING: "Starting", FAILED: "Failed", DELETING: "Terminating"}
"""Of kinds without a phase of their own, by the state of their verdict."""


class Explanation(NamedTuple):
    verdict: Verdict
    scheduling: tuple[str, ...] = ()
    """What it needs, what is free where, who holds it, what would let it start: lines as `pdc explain` prints them."""
    next_step: str = ""


def phase_of(verdict: Verdict) -> str:
    return PHASES[verdict.state]


def quick(obj: Object, pods: Sequence[Object], events: Sequence[Object], *, now: float, language: str) -> Explanation:
    return Explanation(why(obj, pods=pods, events=events, now=now, language=language))


class Examiner:
    """Of one viewer."""

    def __init__(self, identity: Identity, clock: Clock) -> None:
        self._identity, self._clock = identity, clock
        self.client = identity.client
        """With the rights of the viewer."""
        self._kept: OrderedDict[tuple[object, ...], asyncio.Task[Explanation]] = OrderedDict()

    async def explain(self, obj: Object, rests_on: Iterable[Object], language: str) -> Explanation:
        """`rests_on` are the pods and events known of it: while none of them changes, the answer stays."""
        versions = (str(one["metadata"].get("resourceVersion")) for one in (obj, *rests_on))
        period = int(self._clock.monotonic() / KEPT_SECONDS)
        key = (obj["metadata"].get("uid"), language, period, *sorted(versions))
        if key not in self._kept:
            self._kept[key] = asyncio.ensure_future(asyncio.to_thread(self._explain, obj, language))
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        try:
            return await asyncio.shield(self._kept[key])
        except Exception:
            self._kept.pop(key, None)
            raise

    def _explain(self, obj: Object, language: str) -> Explanation:
        config = self._identity.config
        namespace = obj["metadata"].get("namespace")
        arguments = argparse.Namespace(kubeconfig=None, context=None, namespace=namespace, yes=False)
        transport = StdlibTransport(config, timeout=SECONDS, user_agent="dashboard")
        with cli.Session(arguments, api=Api(config, Client(transport))) as session:
            members, _, verdict = examine(session, obj, language=language)
            waits = verdict.state == WAITING
            pods = [one.pod for one in members]
            found = scheduling(session, obj, pods, language=language) if waits else None
            step = outcome.next_step(obj, embedded=is_embedded(session)) if verdict.state == FAILED else ""
            return Explanation(verdict, tuple(found.lines) if found else (), step)
