"""Pods that the API server refuses: a quota, a missing permission, a rule of admission.

A gang that cannot be made whole must not hold half of the room it needs, which another job could use. What was made of
it is withdrawn, the refusal stands on the job, and the whole is tried again: later each time, at once after the spec
has changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from paddlecloud.kube.backoff import exponential
from paddlecloud.kube.errors import BadRequest, Forbidden, Invalid
from paddlecloud.kube.plan import PlanFailed

REASON = "FailedCreate"
PAUSE, LONGEST = 2.0, 60.0


@dataclass(frozen=True, slots=True)
class Refusal:
    text: str
    retry_at: float
    generation: int
    """Of the spec that was refused."""
    times: int = 1


def after(failed: PlanFailed, last: Refusal | None, *, generation: int, now: float) -> Refusal | None:
    """What a failed attempt means; None for troubles that pass by themselves, such as a server that is away."""
    if not any(isinstance(error, (BadRequest, Forbidden, Invalid)) for _, error in failed.errors):
        return last
    times = last.times + 1 if last is not None and last.generation == generation else 1
    pause = exponential(times - 1, base=PAUSE, cap=LONGEST)
    return Refusal(str(failed), now + pause, generation, times)
