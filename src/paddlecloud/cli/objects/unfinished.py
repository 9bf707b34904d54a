"""Jobs and workflows of a platform that have not ended: what `pdc down` interrupts, and `pdc up` takes up again."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from paddlecloud.cli.objects.api import Api, connect
from paddlecloud.kube.argo import COMPLETED, WORKFLOWS
from paddlecloud.kube.errors import ApiError, ConfigError
from paddlecloud.kube.resource import JOBS, PADDLEJOBS, SAMPLEJOBS, Object, Resource, controller_of
from paddlecloud.sdk.outcome import ending

JOB_KINDS = {PADDLEJOBS: "pdj", SAMPLEJOBS: "samplejob", JOBS: "job"}
WORKFLOW_KINDS = {WORKFLOWS: "wf"}
SELECTORS = {WORKFLOWS: f"{COMPLETED}!=true"}
"""Workflows that are over are many and large, and have a label that says so."""

ANSWER_SECONDS = 5.0
"""For each answer of the platform: it is stopped all the same if it does not answer."""
NAMED = 10
"""Jobs, and workflows, that are shown; the others are counted."""


class Running(NamedTuple):
    name: str
    """As commands take it: `pdj/train`."""
    namespace: str
    phase: str

    def __str__(self) -> str:
        where = "" if self.namespace == "default" else f" -n {self.namespace}"
        return f"{self.name}{where} ({self.phase})"


class Unfinished(NamedTuple):
    jobs: list[Running]
    workflows: list[Running]


def of_platform(data: Path) -> Unfinished | None:
    """What runs on the platform of this directory; None where it does not answer."""
    try:
        api = connect(kubeconfig=str(data / "kubeconfig"), context=None, timeout=ANSWER_SECONDS)
    except (ConfigError, OSError):
        return None
    try:
        return Unfinished(_of_kinds(api, JOB_KINDS), _of_kinds(api, WORKFLOW_KINDS))
    except (ApiError, OSError):
        return None
    finally:
        api.close()


def _of_kinds(api: Api, kinds: dict[Resource, str]) -> list[Running]:
    return [
        Running(
            f"{kind}/{found['metadata']['name']}",
            str(found["metadata"].get("namespace", "")),
            str((found.get("status") or {}).get("phase") or "Running"),
        )
        for resource, kind in kinds.items()
        for found in api.do(api.client.list(resource, label_selector=SELECTORS.get(resource), limit=500)).items
        if _is_interrupted(found)
    ]


def _is_interrupted(obj: Object) -> bool:
    """Whether it has not ended. A Job that something else made is part of that, and a schedule is no job itself."""
    spec = obj.get("spec") or {}
    waits = spec.get("suspend") or spec.get("schedule") or (obj.get("status") or {}).get("phase") == "Suspended"
    part = obj.get("kind") == JOBS.kind and controller_of(obj) is not None
    return ending(obj) is None and not waits and not part


def lines(found: Unfinished) -> list[str]:
    """For people: jobs and workflows, and what becomes of them."""
    again = "; a step whose program runs now runs it again from the beginning (beside a daemon it fails)"
    return [*_group("job", found.jobs), *_group("workflow", found.workflows, again)]


def _group(noun: str, found: list[Running], what_happens: str = "") -> list[str]:
    if not found:
        return []
    count = f"1 {noun} has" if len(found) == 1 else f"{len(found)} {noun}s have"
    shown = [f"  {one}" for one in found[:NAMED]]
    more = [f"  and {len(found) - NAMED} more"] if len(found) > NAMED else []
    return [f"{count} not ended and will go on after `pdc up`{what_happens}:", *shown, *more]
