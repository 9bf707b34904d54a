"""Volumes that cannot be mounted, as both kubelets report them."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api import mounts
from paddlecloud.api.paddlejob.cause import first_cause

SAID = mounts.sentence("data", "hostPath type check failed: /x is not a directory")


def pod(message: str = "", reason: str = "ContainerCreating") -> dict[str, Any]:
    waiting = {"reason": reason, **({"message": message} if message else {})}
    return {
        "metadata": {"name": "job-worker-0", "uid": "u1"},
        "status": {"containerStatuses": [{"name": "paddle", "state": {"waiting": waiting}}]},
    }


def event(second: int, reason: str = mounts.REASON, message: str = SAID, **about: str) -> dict[str, Any]:
    return {
        "reason": reason,
        "message": message,
        "lastTimestamp": f"2026-01-01T00:00:{second:02}Z",
        "involvedObject": {"kind": "Pod", "name": "job-worker-0", "uid": "u1", **about},
    }


EVENTS = {
    "none": ([], ""),
    "a failure": ([event(1)], SAID),
    "the newest of several": (
        [event(2, message=mounts.sentence("b", "later")), event(1)],
        mounts.sentence("b", "later"),
    ),
    "mounted since": ([event(1), event(2, "Pulling", "Pulling image")], ""),
    "failed again after an earlier start": ([event(1, "Started", "Started container"), event(2)], SAID),
    "of another pod": ([event(1, name="job-worker-1")], ""),
    "of an earlier pod of the name": ([event(1, uid="u0")], ""),
    "a summary without a cause": ([event(1, message="Unable to attach or mount volumes: timed out")], ""),
    "the file of the start barrier": ([event(1, message=mounts.sentence("h", 'configmap "job" not found'))], ""),
    "another ConfigMap": ([event(1, message=mounts.sentence("h", 'configmap "conf" not found'))],
                          mounts.sentence("h", 'configmap "conf" not found')),
}  # fmt: skip


@pytest.mark.parametrize(("events", "message"), EVENTS.values(), ids=EVENTS.keys())
def test_the_events_of_a_pod_say_what_its_status_does_not(events: list[dict[str, Any]], message: str) -> None:
    found = mounts.explained(pod(), events)
    waiting = found["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting.get("message", "") == message
    assert mounts.has_failed(waiting) is bool(message)


def test_what_a_pod_says_itself_stays() -> None:
    building = pod('image "i": 3 MB of 20 MB')
    assert mounts.explained(building, [event(1)]) == building
    failing = pod("back-off", reason="ImagePullBackOff")
    assert mounts.explained(failing, [event(1)]) == failing


def test_the_server_of_a_mount_is_named_though_kubelets_write_it_on_a_line_of_its_own() -> None:
    command = "Mounting command: mount\nMounting arguments: -t nfs 10.0.0.1:/nas /var/lib/kubelet/pods/u1/volumes/nfs"
    said = mounts.sentence("nfs-pv", f"mount failed: exit status 32\n{command}\nOutput: mount: bad option")
    cause = first_cause([mounts.explained(pod(), [event(1, message=said)])], "job")
    assert cause is not None
    assert cause.reason == mounts.REASON
    assert "10.0.0.1:/nas" in cause.text
