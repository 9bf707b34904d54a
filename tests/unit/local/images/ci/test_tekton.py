"""The Tekton objects of the suites' builds. That Tekton runs them is shown in tests/cluster/test_tekton.py."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.local.images.ci import push_event, script, tekton, triggers
from paddlecloud.local.images.ci.tekton import Settings
from paddlecloud.local.images.suites import Suites, parse_suites

SUITE = {
    "licence": "Apache-2.0",
    "repository": "https://example.org/PaddleOCR",
    "packages": ["ocr==2.10.0"],
    "programs": {"train": "tools/train.py"},
}
BODY = {
    "paddle": "3.3.1",
    "bases": ["3.3.1", "3.3.1-gpu-cuda12.6-cudnn9.5"],
    "python": ">=3.10",
    "suites": {
        "PaddleOCR": {**SUITE, "version": "2.10", "branch": "release/2.10"},
        "PaddleNLP": {**SUITE, "version": "2.8", "branch": "develop"},
    },
}
SETTINGS = Settings(registry="registry.example.org/team", namespace="builds", tool="paddlecloud/paddlecloud")
SIGNED = Settings(registry="registry.example.org/team", namespace="builds", tool="t", webhook_secret="hook")


@pytest.fixture
def found() -> Suites:
    return parse_suites(BODY, Path("suites.yaml"))


def of_kind(objects: list[Any], kind: str) -> dict[str, Any]:
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}


def test_each_base_is_built_next_to_the_others_under_the_tag_of_its_environment(found: Suites) -> None:
    tasks = of_kind(tekton.builds(found, SETTINGS), "Pipeline")[tekton.MULTI]["spec"]["tasks"]
    assert [task["taskRef"]["name"] for task in tasks] == [tekton.TASK] * 2
    assert not any("runAfter" in task for task in tasks)
    values = tekton.parameters(found.suites[0], found.bases, SETTINGS)
    assert values["target"] == "registry.example.org/team/paddleocr"
    assert (values["tag-0"], values["tag-1"]) == ("2.10-cpu", "2.10-gpu-cuda12.6-cudnn9.5")


def test_a_pipeline_takes_and_passes_on_what_its_runs_are_given(found: Suites) -> None:
    objects = tekton.builds(found, SETTINGS)
    task = of_kind(objects, "Task")[tekton.TASK]
    asked_by_task = {each["name"] for each in task["spec"]["params"]}
    for name, bases in ((tekton.SINGLE, found.bases[:1]), (tekton.MULTI, found.bases)):
        pipeline = of_kind(objects, "Pipeline")[name]["spec"]
        asked = {each["name"] for each in pipeline["params"]}
        assert asked == set(tekton.parameters(found.suites[0], bases, SETTINGS))
        for each in pipeline["tasks"]:
            assert {param["name"] for param in each["params"]} == asked_by_task
            used = re.findall(r"\$\(params\.([\w-]+)\)", json.dumps(each))
            assert set(used) <= asked


def test_no_value_becomes_text_of_a_script(found: Suites) -> None:
    for step in of_kind(tekton.builds(found, SETTINGS), "Task")[tekton.TASK]["spec"]["steps"]:
        assert "$(" not in re.sub(r"\$\((?:cat|find|python)\b", "", step["script"]), step["name"]


def test_builds_have_no_rights_and_no_privileges(found: Suites) -> None:
    objects = [*tekton.builds(found, SETTINGS), *triggers.triggers(found, SETTINGS)]
    assert of_kind(objects, "ServiceAccount")[tekton.ACCOUNT]["automountServiceAccountToken"] is False
    bound = [subject["name"] for each in of_kind(objects, "RoleBinding").values() for subject in each["subjects"]]
    assert tekton.ACCOUNT not in bound
    assert '"privileged": true' not in json.dumps(objects)


def test_without_a_key_for_pushes_nothing_listens(found: Suites) -> None:
    made = triggers.triggers(found, SETTINGS)
    assert of_kind(made, "EventListener") == {}
    assert set(of_kind(made, "CronJob")) == {"image-builds-cleanup"}


def test_every_trigger_asks_for_a_signature_and_uses_nothing_else_of_the_event(found: Suites) -> None:
    made = triggers.triggers(found, SIGNED)
    for trigger in of_kind(made, "EventListener")[triggers.LISTENER]["spec"]["triggers"]:
        first = trigger["interceptors"][0]
        assert first["ref"] == {"name": "github"}
        assert {"name": "secretRef", "value": {"secretName": "hook", "secretKey": "token"}} in first["params"]
        assert "bindings" not in trigger
    assert "$(" not in json.dumps(of_kind(made, "TriggerTemplate"))


def test_each_suite_is_built_once_a_week_on_its_day(found: Suites) -> None:
    made = of_kind(triggers.triggers(found, SIGNED), "CronJob")
    days = {name: each["spec"]["schedule"] for name, each in made.items() if name.startswith("build-")}
    assert days == {"build-paddleocr": "1 0 * * 0", "build-paddlenlp": "1 0 * * 1"}


def test_an_event_has_the_signature_that_github_would_give_it() -> None:
    body, headers = push_event.event("PaddleOCR", "release/2.10", "key")
    assert json.loads(body) == {"ref": "refs/heads/release/2.10", "repository": {"name": "PaddleOCR"}}
    assert headers["X-Hub-Signature-256"] == "sha256=" + hmac.digest(b"key", body, hashlib.sha256).hex()


def test_the_names_to_push_as_follow_from_the_tag_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "tag").write_text("2.10-cpu-0a1b2c\n")
    env = {"TARGET": "r/paddleocr", "TAG_FILE": f"{tmp_path}/tag", "URL_FILE": f"{tmp_path}/url"}
    said = subprocess.run(
        ["/bin/sh", "-c", script("target.sh") + 'echo "$IMAGE $TAGS"'],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["r/paddleocr:2.10-cpu-0a1b2c", "r/paddleocr:2.10-cpu-latest"]
    assert (tmp_path / "url").read_text() == "r/paddleocr:2.10-cpu-0a1b2c"
