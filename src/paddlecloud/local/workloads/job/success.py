"""When enough has succeeded: all completions, or what a successPolicy names. Pure.

As pkg/controller/job/success_policy.go.
"""

from __future__ import annotations

from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.job.failure import ConditionCause
from paddlecloud.local.workloads.job.indexes import Indexes

REACHED = ConditionCause("CompletionsReached", "Reached expected number of succeeded pods")


def by_policy(job: Object, completed: Indexes) -> ConditionCause | None:
    """The first rule of an indexed Job that the completed indexes satisfy."""
    spec = job["spec"]
    for number, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or ()):
        if completed and _is_met(rule, completed, below=int(spec.get("completions") or 0)):
            return ConditionCause("SuccessPolicy", f"Matched rules at index {number}")
    return None


def _is_met(rule: Object, completed: Indexes, *, below: int) -> bool:
    count = rule.get("succeededCount")
    if rule.get("succeededIndexes") is None:
        return count is not None and len(completed) >= int(count)
    named = Indexes.parse(rule["succeededIndexes"], below=below)
    done = len(named & completed)
    return bool(named) and (done == len(named) or (count is not None and done >= int(count)))
