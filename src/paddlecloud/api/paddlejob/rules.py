"""Rules between fields of a PaddleJob, in CEL: the API server enforces them on every write, also through `scale`."""

from __future__ import annotations

from paddlecloud.api.fields import Rule
from paddlecloud.api.paddlejob.roles import ROLES

_PODS = " + ".join(f"(has(self.{role}) ? self.{role}.replicas : 0)" for role in ROLES)


def _fits(policy: str, path: str) -> Rule:
    """`policy` is the CEL expression that is true where the policy at `path` is there."""
    field = f"{path}.schedulingPolicy.minAvailable"
    return Rule(
        f"!({policy}) || !has(self{field}) || self{field} <= {_PODS}",
        f"spec{field} must not exceed the number of pods: scale up, or lower it first",
    )


NUMBERS_OF_PODS = (
    Rule(f"{_PODS} > 0", "at least one role needs a pod; to stop a job without deleting it set spec.suspend"),
    Rule("!has(self.elastic) || has(self.worker)", "spec.worker is required in an elastic job"),
    Rule(
        "!has(self.elastic) || !has(self.worker) || ("
        "(!has(self.worker.requests) || self.worker.requests <= self.worker.replicas) && "
        "(!has(self.worker.limits) || self.worker.replicas <= self.worker.limits))",
        "spec.worker.replicas of an elastic job must lie between spec.worker.requests and spec.worker.limits",
    ),
    _fits("has(self.schedulingPolicy)", ""),
    _fits("has(self.runPolicy) && has(self.runPolicy.schedulingPolicy)", ".runPolicy"),
)
"""What scaling could break; `validate` judges the same for objects stored under an older definition."""
