"""Which spec a job is run by: its own, or the last valid one when a later edit is invalid.

What runs must not be left alone because of a mistake that came later: nothing would be restarted or cleaned up then.
So the last spec that was valid is kept in the job's status, where neither a restart of the controller nor an edit by a
user can lose it, until the job has ended. The API server refuses most such edits; what it cannot judge comes here.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from paddlecloud.api.paddlejob import PaddleJob, decode, validate
from paddlecloud.api.problems import DecodeError
from paddlecloud.kube.conditions import has_condition
from paddlecloud.kube.resource import Object

CONDITION = "Valid"
INVALID = "InvalidSpec"

LARGEST_KEPT = 256 * 1024
"""Bytes of a spec that is kept: with the spec itself the object must stay below what etcd stores, 1.5 MB."""


class Reading(NamedTuple):
    job: Object
    """With the spec that it is run by."""
    parsed: PaddleJob | None
    """The same, decoded; None where there is no spec that can be read."""
    problems: str
    """What is wrong with the spec as it is written; empty where nothing is."""
    goes_on: bool
    """Whether the job is run by an older spec than the one that is written."""

    @property
    def complaint(self) -> str:
        return f"{self.problems}; the job goes on by its last valid spec"


def read(job: Object) -> Reading:
    parsed, problems = _judge(job)
    if problems and (older := _with_last_valid(job)) is not None:
        last, wrong = _judge(older)
        if not wrong:
            return Reading(older, last, problems, True)
    return Reading(job, parsed, problems, False)


def _judge(job: Object) -> tuple[PaddleJob | None, str]:
    try:
        parsed = decode(job)
    except DecodeError as error:
        return None, str(error)
    return parsed, "; ".join(str(problem) for problem in validate(parsed))


def _with_last_valid(job: Object) -> Object | None:
    last = (job.get("status") or {}).get("lastValidSpec")
    return {**job, "spec": last} if isinstance(last, dict) else None


def as_run(job: Object) -> Object:
    """The job with the spec that the last pass decided to run it by; what is looked up for it goes by that."""
    return (_with_last_valid(job) if has_condition(job, CONDITION, "False") else None) or job


def kept(spec: Object | None) -> Object | None:
    """What of a valid spec goes into the status: all of it, or nothing where it is too large."""
    return spec if spec is not None and len(msgspec.json.encode(spec)) <= LARGEST_KEPT else None
