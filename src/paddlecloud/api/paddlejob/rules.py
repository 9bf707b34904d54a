"""Rules between fields of a PaddleJob, in CEL: the API server enforces them on every write, also through `scale`.

Rules of its name hold when it is created.
"""

from __future__ import annotations

from paddlecloud.api.fields import Rule
from paddlecloud.api.name_rules import MAX_LABEL, at_creation
from paddlecloud.api.names import ROLES

MAX_PODS = 5_000
"""Pods of a job. Every pod gets the endpoints of all in one environment variable, and Linux takes 128 KiB of it: 5,900
addresses of 22 characters. The status refers to each pod, and an object has at most 1.5 MiB: 9,900 pods."""

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
    Rule(f"{_PODS} <= {MAX_PODS}", f"a job has at most {MAX_PODS} pods: each gets the endpoints of all of them"),
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


def _name_fits(role: str) -> Rule:
    """Of the last pod that the role may get; `validate` names it."""
    block = f"self.spec.{role}"
    digits = "1"
    for more in (10, 100, 1_000):
        many = f"{block}.replicas > {more} || (has({block}.limits) && {block}.limits > {more})"
        digits = f"{digits} + ({many} ? 1 : 0)"
    longest = longest_name(role, 1)
    return at_creation(
        f"!has(self.spec) || !has({block}) || size(self.metadata.name) <= {longest + 1} - ({digits})",
        f"pods are called NAME-{role}-N and have at most {MAX_LABEL} characters: use a job name of at most {longest}, "
        f"of {longest - 1} with more than 10 pods, of {longest - 2} with more than 100",
    )


def longest_name(role: str, pods: int) -> int:
    """Characters that the name of a job with so many pods of a role may have."""
    return MAX_LABEL - len(f"-{role}-{max(0, pods - 1)}")


NAME = (
    at_creation("!self.metadata.name.contains('.')", "must not contain dots: pods take their host names from it"),
    *(_name_fits(role) for role in ROLES),
)
