"""What of a missing ConfigMap or key is the start barrier of a job, and what is a mistake in its template."""

from __future__ import annotations

import pytest

from paddlecloud.api.paddlejob import gate

ADDRESSES, SERVERS = gate.sentence("hi", ""), gate.sentence("hi", gate.SERVERS_READY)
REPORTS = [
    ('configmap "hi" not found', ADDRESSES),
    ('configmap "other" not found', ""),
    ("couldn't find key PADDLE_GENERATION_3 in ConfigMap default/hi", ADDRESSES),
    ("couldn't find key PADDLE_SERVERS_READY_0 in ConfigMap default/hi", SERVERS),
    ("couldn't find key PADDLE_TRAINERS_NMU in ConfigMap default/hi", ""),
    ("couldn't find key mine in ConfigMap default/hi", ""),
    ("couldn't find key PADDLE_GENERATION_3 in ConfigMap default/other", ""),
]


@pytest.mark.parametrize(("message", "awaited"), REPORTS)
def test_only_the_barriers_own_keys_are_the_barrier(message: str, awaited: str) -> None:
    assert gate.awaited("CreateContainerConfigError", message, "hi") == awaited
    event = {
        "reason": "Failed",
        "message": f"Error: {message}",
        "involvedObject": {"kind": "Pod", "name": "hi-worker-0"},
    }
    assert gate.event_awaited(event) == awaited
