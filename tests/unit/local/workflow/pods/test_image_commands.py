"""A container without a command gets that of its image, and its arguments stay where they were."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.local.images.environment import ImageProgram
from paddlecloud.local.workflow.pods.image_commands import with_commands

IMAGES = {"say": ImageProgram(("/argosay",), ("echo",)), "shell": ImageProgram((), ("sh",)), "bare": ImageProgram()}


@pytest.mark.parametrize(
    ("container", "command", "args"),
    [
        ({"image": "say", "args": ["cat", "a"]}, ["/argosay"], ["cat", "a"]),
        ({"image": "say"}, ["/argosay"], ["echo"]),
        ({"image": "shell"}, ["sh"], []),
        ({"image": "shell", "args": ["ls", "-l"]}, ["ls", "-l"], []),
        ({"image": "say", "command": ["sh"], "args": ["-c"]}, ["sh"], ["-c"]),
        ({"image": "bare"}, None, None),
        ({"image": "unknown", "args": ["a"]}, None, ["a"]),
    ],
)
def test_the_command_is_that_of_kubernetes(container: dict[str, Any], command: Any, args: Any) -> None:
    for kind in ("container", "script"):
        made = with_commands({kind: container}, IMAGES.get)[kind]
        assert (made.get("command"), made.get("args")) == (command, args)


def test_containers_of_sets_and_sidecars_have_theirs_too() -> None:
    template = {"containerSet": {"containers": [{"image": "say"}]}, "sidecars": [{"image": "shell"}]}
    made = with_commands(template, IMAGES.get)
    assert made["containerSet"]["containers"][0]["command"] == ["/argosay"]
    assert made["sidecars"][0]["command"] == ["sh"]
    assert template["containerSet"]["containers"][0] == {"image": "say"}
