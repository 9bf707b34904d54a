"""What a node says of a pod that waits for its containers."""

from __future__ import annotations

import pytest

from paddlecloud.local.workflow.pods.node_state import observe


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        ({"reason": "ContainerCreating"}, ""),
        ({"reason": "PodInitializing"}, ""),
        (
            {
                "reason": "ContainerCreating",
                "message": 'image "a:1": installing b, c: downloaded 3 MB of 9 MB announced by now, 5 s so far',
            },
            'ContainerCreating: image "a:1": installing b, c',
        ),
        (
            {"reason": "ContainerCreating", "message": 'volume "v" is mounted'},
            'ContainerCreating: volume "v" is mounted',
        ),
        ({"reason": "ImagePullBackOff", "message": "no recipe"}, "ImagePullBackOff: no recipe"),
    ],
)
def test_an_image_that_is_built_is_the_reason_without_its_progress(waiting: dict[str, str], said: str) -> None:
    status = {"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]}
    assert observe({"status": status})[:2] == ("Pending", said)
