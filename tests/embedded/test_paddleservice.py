"""PaddleServices with real kubectl, on the embedded platform: a URL, a canary, a new revision, a true status."""

from __future__ import annotations

import pytest

from embedded.serving_world import apply, ask, paddleservice, read, url_of
from harness import Kubectl


@pytest.mark.parametrize("group", ["serving.paddlepaddle.org", "elasticserving.paddlepaddle.org"])
def test_a_service_of_either_group_gets_a_url_that_answers(kubectl: Kubectl, namespace: str, group: str) -> None:
    apply(kubectl, paddleservice("m", "one", group=group))
    kind = f"paddleservice.{group}"
    url = url_of(kubectl, kind, "m")
    status = read(kubectl, kind, "m")["status"]
    revision = status["default"]["name"]
    assert ask(url) == (200, f"one {revision}")
    assert ask(url, host=f"m.{namespace}.example.com") == (200, f"one {revision}")
    assert status["traffic"] == "100"
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "DefaultEndpointReady": "True",
        "RoutesReady": "True",
        "Ready": "True",
    }
