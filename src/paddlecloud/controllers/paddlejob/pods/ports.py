"""Which twenty ports a job uses.

A pod with its own network always gets the same block, as in paddle-operator. Where pods share the ports of their
node (`intranet: Host`) two jobs must not meet: each gets its own block below the ephemeral range and below
Kubernetes' node ports. The block is chosen from the job's uid, so it needs no store: it is written into the job's
status and read back from there.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable

from paddlecloud.api.paddlejob import phase_of
from paddlecloud.kube.resource import Object

BASE = 36000
BLOCK = 20
GLOO_OFFSET = 18
"""The gloo rendezvous server of ps-0 listens this far above its own port."""

SHARED_RANGE = range(20000, 30000, BLOCK)

HELD = "held"
"""Under this value the index `holders` has the jobs that keep others from their ports."""


def choose(uid: str, used: Collection[int]) -> int | None:
    """A block no other job uses, or None when all are taken. The same uid and neighbours give the same block."""
    blocks = len(SHARED_RANGE)
    first = zlib.crc32(uid.encode()) % blocks
    for step in range(blocks):
        base = SHARED_RANGE[(first + step) % blocks]
        if base not in used:
            return base
    return None


def holders(job: Object) -> Iterable[str]:
    return (HELD,) if _held(job.get("status") or {}) else ()


def _held(status: Object) -> bool:
    return status.get("port") in SHARED_RANGE and phase_of(status.get("phase")) not in ("Completed", "Failed")


class Held:
    """Who holds which block, by uid. What was decided counts at once: the status that says so may be on its way."""

    def __init__(self) -> None:
        self._decided: dict[str, int] = {}

    def note(self, job: Object, status: Object | None) -> None:
        """A status was decided for the job; None leaves it as it is."""
        if status is None:
            return
        if _held(status):
            self._decided[job["metadata"]["uid"]] = status["port"]
        else:
            self.forget(job["metadata"]["uid"])

    def forget(self, uid: str) -> None:
        self._decided.pop(uid, None)

    def by_others(self, uid: str, jobs: Iterable[Object]) -> frozenset[int]:
        """Blocks of other jobs; `jobs` are those that the index has."""
        written = {job["metadata"]["uid"]: int(job["status"]["port"]) for job in jobs}
        return frozenset(port for owner, port in {**written, **self._decided}.items() if owner != uid)
