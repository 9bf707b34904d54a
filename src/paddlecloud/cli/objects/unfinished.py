"""The jobs of a platform that have not ended: what `pdc down` interrupts, and `pdc up` takes up again."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from paddlecloud.cli.objects.api import Api, connect
from paddlecloud.kube.errors import ApiError, ConfigError
from paddlecloud.kube.resource import JOBS, PADDLEJOBS, SAMPLEJOBS, Object, Resource, controller_of
from paddlecloud.sdk.outcome import ending

KINDS = {PADDLEJOBS: "pdj", SAMPLEJOBS: "samplejob", JOBS: "job"}

ANSWER_SECONDS = 5.0
"""For each answer of the platform: it is stopped all the same if it does not answer."""
NAMED = 10
"""Jobs that are shown; the others are counted."""


class Running(NamedTuple):
    name: str
    """As commands take it: `pdj/train`."""
    namespace: str
    phase: str

    def __str__(self) -> str:
        where = "" if self.namespace == "default" else f" -n {self.namespace}"
        return f"{self.name}{where} ({self.phase})"


def of_platform(data: Path) -> list[Running] | None:
    """What runs on the platform of this directory; None where it does not answer."""
    try:
        api = connect(kubeconfig=str(data / "kubeconfig"), context=None, timeout=ANSWER_SECONDS)
    except (ConfigError, OSError):
        return None
    try:
        return [found for resource in KINDS for found in _of_kind(api, resource)]
    except (ApiError, OSError):
        return None
    finally:
        api.close()


def _of_kind(api: Api, resource: Resource) -> list[Running]:
    jobs = api.do(api.client.list(resource, limit=500)).items
    return [
        Running(
            f"{KINDS[resource]}/{job['metadata']['name']}",
            str(job["metadata"].get("namespace", "")),
            str((job.get("status") or {}).get("phase") or "Running"),
        )
        for job in jobs
        if _is_interrupted(job)
    ]


def _is_interrupted(job: Object) -> bool:
    """Whether it has not ended. A Job that something else made is part of that, and a schedule is no job itself."""
    spec = job.get("spec") or {}
    waits = spec.get("suspend") or spec.get("schedule") or (job.get("status") or {}).get("phase") == "Suspended"
    part = job.get("kind") == JOBS.kind and controller_of(job) is not None
    return ending(job) is None and not waits and not part


def lines(jobs: list[Running]) -> list[str]:
    """For people: the jobs, and what becomes of them."""
    count = "1 job has" if len(jobs) == 1 else f"{len(jobs)} jobs have"
    shown = [f"  {job}" for job in jobs[:NAMED]]
    more = [f"  and {len(jobs) - NAMED} more"] if len(jobs) > NAMED else []
    return [f"{count} not ended and will go on after `pdc up`:", *shown, *more]
