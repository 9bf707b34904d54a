"""Where the time of a job went, from what objects keep of it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import parse_rfc3339
from paddlecloud.ui.timeline import timeline

DAY = "2026-09-21T14:"
NOW = parse_rfc3339(f"{DAY}10:00Z")


def job(**status: object) -> Object:
    return {"metadata": {"name": "j", "creationTimestamp": f"{DAY}00:00Z"}, "status": status}


def pod(scheduled: str = "", started: str = "") -> Object:
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": f"{DAY}{scheduled}Z"}]
    states = [{"state": {"running": {"startedAt": f"{DAY}{started}Z"}}}] if started else []
    return {"status": {"conditions": conditions if scheduled else [], "containerStatuses": states}}


def event(reason: str, at: str) -> Object:
    return {"reason": reason, "lastTimestamp": f"{DAY}{at}Z"}


PULL = [event("Pulling", "01:10"), event("Pulled", "02:10")]
FAILED = [{"time": f"{DAY}05:00Z"}]
CASES = {
    "nothing but its age": (job(), [], [], [("queued", 600)]),
    "scheduled, not started": (job(), [pod("02:00")], [], [("queued", 120), ("starting", 480)]),
    "running": (
        job(startTime=f"{DAY}03:00Z"), [pod("02:00", "03:00")], [],
        [("queued", 120), ("starting", 60), ("running", 420)],
    ),
    "pulled its image": (
        job(startTime=f"{DAY}03:00Z"), [pod("01:00", "03:00")], PULL,
        [("queued", 60), ("starting", 10), ("pulling", 60), ("starting", 50), ("running", 420)],
    ),
    "ended": (
        job(startTime=f"{DAY}01:00Z", completionTime=f"{DAY}04:00Z"), [], [], [("starting", 60), ("running", 180)]
    ),
    "restarted": (
        job(startTime=f"{DAY}01:00Z", failures=FAILED), [pod("05:10", "06:00")], [],
        [("starting", 60), ("running", 240), ("restarting", 60), ("running", 240)],
    ),
    "failed before it ran": (
        job(failures=FAILED, completionTime=f"{DAY}05:00Z"), [pod("04:00")], [], [("queued", 240), ("starting", 60)]
    ),
    "no time of its own": ({"metadata": {"name": "j"}}, [], [], []),
    "times that are none": (job(startTime="soon", failures=[{"time": "x"}]), [], [], [("queued", 600)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_stretches_of_a_job(case: str) -> None:
    obj, pods, events, expected = CASES[case]
    found = timeline(obj, pods, events, NOW)
    assert [(one.kind, round(one.seconds)) for one in found if one.seconds] == [
        (kind, seconds) for kind, seconds in expected if seconds
    ]
    assert all(one.end == other.begin for one, other in pairwise(found))
