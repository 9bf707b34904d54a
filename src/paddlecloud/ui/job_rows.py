"""A PaddleJob as a row: what lists filter and sort by. Pure, and made once for each state of a job."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlecloud.api.paddlejob.status import phase_of
from paddlecloud.api.training_pod import TRAINING_ROLES
from paddlecloud.kube.conditions import condition_of
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.outcome import ending
from paddlecloud.ui.formatting import share

DEFAULT_QUEUE = "default"


class JobRow(NamedTuple):
    namespace: str
    name: str
    phase: str
    created: str
    ended: str
    queue: str
    pods: str
    """Running of wanted, by role: `2/2`, with parameter servers `2/2 + 1/1`; of one that ended how many it had."""
    done: float | None
    progress: str
    eta: object
    restarts: int
    reason: str
    message: str
    ending: str
    """How it ended; empty while it goes on."""
    text: str
    """Name, labels and reasons in lower case, for the search."""

    @property
    def waits(self) -> bool:
        return not self.ending and self.phase in ("", "Pending", "Starting")


def row_of(job: Object) -> JobRow:
    meta, spec, status = job["metadata"], job.get("spec") or {}, job.get("status") or {}
    policy = spec.get("schedulingPolicy") or (spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    progress = status.get("progress") or {}
    reason, message = str(status.get("reason") or ""), " ".join(str(status.get("message") or "").split())
    phase = phase_of(status.get("phase")) or "Pending"
    refused = condition_of(job, "Valid") or {}
    if refused.get("status") == "False" and not message:
        reason, message = str(refused.get("reason") or ""), str(refused.get("message") or "")
    labels = (f"{key}={value}" for key, value in (meta.get("labels") or {}).items())
    searched = (meta["name"], meta.get("namespace", ""), phase, reason, message, *labels)
    return JobRow(
        namespace=str(meta.get("namespace", "")),
        name=str(meta["name"]),
        phase=phase,
        created=str(meta.get("creationTimestamp") or ""),
        ended=str(status.get("completionTime") or ""),
        queue=str(policy.get("queue") or DEFAULT_QUEUE),
        pods=_pods(spec, status, ended=ending(job) is not None),
        done=_done(progress),
        progress=str(progress.get("done") or ""),
        eta=progress.get("etaSeconds"),
        restarts=_count(status.get("restarts")) + _count(status.get("disruptions")),
        reason=reason,
        message=message,
        ending=ending(job) or "",
        text="\n".join(searched).lower(),
    )


def _pods(spec: Object, status: Object, *, ended: bool) -> str:
    found = []
    for role in TRAINING_ROLES:
        wanted = (spec.get(role) or {}).get("replicas")
        if wanted:
            ready = (status.get(role) or {}).get("ready") or f"0/{wanted}"
            found.append(str(wanted if ended else ready))
    return " + ".join(found)


def _done(progress: Object) -> float | None:
    for part, whole in (("step", "totalSteps"), ("epoch", "totalEpochs")):
        if (found := share(progress.get(part), progress.get(whole))) is not None:
            return found
    return None


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0
