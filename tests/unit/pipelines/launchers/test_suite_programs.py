"""What `program` and `model_service` create, and which value of a log counts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube.literal_text import without_escapes
from paddlecloud.pipelines.components import suite_set
from paddlecloud.pipelines.launchers import suite_programs
from paddlecloud.pipelines.launchers.arguments import Values, parse
from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.pipelines.launchers.suite_programs import LastMatch


def values(**given: Any) -> Values:
    options = {one.parameter: one.option for one in suite_set.PROGRAM.inputs}
    given = {"name": "clas-train", "image": "clas:1", "command": "true", "pvc_name": "work", **given}
    return parse(suite_set.PROGRAM, [word for name, value in given.items() for word in (options[name], str(value))])[0]


def spec(**given: Any) -> dict[str, Any]:
    found: dict[str, Any] = suite_programs.paddle_job(values(**given)).body["spec"]
    return found


def test_a_command_finds_samples_volume_and_workers() -> None:
    found = spec(sampleset="shapes", workers=2, gpu_per_node=1, account="pipeline-runner")
    assert found["sampleSetRef"] == {"name": "shapes", "mountPath": "/data"}
    pod = found["worker"]["template"]["spec"]
    assert (found["worker"]["replicas"], pod["serviceAccountName"]) == (2, "pipeline-runner")
    assert pod["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    assert "/mnt/task-center" in [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]]


def test_what_is_not_given_is_not_in_the_job() -> None:
    found = spec()
    pod = found["worker"]["template"]["spec"]
    assert "sampleSetRef" not in found
    assert set(pod) == {"containers", "volumes"}
    assert set(pod["containers"][0]) == {"name", "image", "command", "volumeMounts"}


def test_a_configuration_is_a_file_for_the_command(tmp_path: Path) -> None:
    text = "a: 'it''s'\nb: \"$(HOME) $HOME\"\n"
    found = spec(config=text, command='cat "$CONFIG"; env | grep -c SUITE_CONFIG')["worker"]["template"]["spec"]
    container = found["containers"][0]
    (variable,) = container["env"]
    assert variable["value"] == text.replace("$(", "$$("), "Kubernetes would put a variable in its place"
    env = {"SUITE_CONFIG": text, "TMPDIR": str(tmp_path), "PATH": os.environ["PATH"]}
    command = [without_escapes(word) for word in container["command"]]
    ran = subprocess.run(command, env=env, capture_output=True, text=True)
    assert ran.stdout == text + "\n0\n"


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (["[clas-0] hmean:0.2", "[clas-0] hmean:0.5", "[clas-0] done"], "0.5"),
        (["hmean:0.9 is of the launcher itself"], ""),
        (["[clas-0] nothing"], ""),
    ],
)
def test_the_last_line_of_a_pod_that_matches_has_the_value(lines: list[str], value: str) -> None:
    match = LastMatch(r"^hmean:([0-9.]+)")
    for line in lines:
        match.take(line)
    assert match.value == value


@pytest.mark.parametrize(("pattern", "words"), [("(", "is no regular expression"), ("hmean", "needs one group")])
def test_a_pattern_that_gives_no_value_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(StepFailed, match=words):
        LastMatch(pattern)


@pytest.mark.parametrize(
    ("given", "words"),
    [({"name": "../x"}, "cannot be a folder's name"), ({"config": "x" * 100_001}, "100000 are allowed")],
)
def test_what_cannot_be_created_is_refused_before_anything_starts(given: dict[str, str], words: str) -> None:
    with pytest.raises(StepFailed, match=words):
        spec(**given)
