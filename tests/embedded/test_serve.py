"""`pdc serve`: from a folder to an answer, and what is said of folders that are no model."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Completed, Kubectl, Target, pdc, until
from paddlecloud.cli.commands.serve import _name
from unit.serving import models

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def serve(server: Target, namespace: str) -> Iterator[Any]:
    server.offer("paddlecloud/serving:latest")

    def run(*args: str, check: bool = True) -> Completed:
        return pdc("-n", namespace, "serve", *args, env=server.env, check=check, timeout=150)

    yield run
    pdc("-n", namespace, "delete", "pds", "--all", "-y", env=server.env)


def fetch(url: str, body: bytes | None = None) -> Any:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_a_folder_is_served_and_its_new_version_taken_up(
    serve: Any, server: Target, namespace: str, tmp_path: Path
) -> None:
    root = tmp_path / "my_scale"
    models.linear(root / "1", factor=2)
    said = serve(str(root)).stdout
    url = said.partition("is served at ")[2].split()[0]
    example = f"{url}/v2/models/my-scale/example"
    assert f"curl -s {example} | curl -s -d @- {url}/v2/models/my-scale/infer" in said
    body = json.dumps({"feed": [{"x": [1, 2, 3]}]}).encode()
    assert fetch(f"{url}/my-scale/prediction", body) == {"result": {"y": [[2, 4, 6]]}}
    assert fetch(f"{url}/v2/models/my-scale/infer", json.dumps(fetch(example)).encode())["model_version"] == "1"
    for subject in ("pds/my-scale", "my-scale"):
        assert "my-scale" in pdc("-n", namespace, "logs", subject, env=server.env).stdout
    models.linear(root / "2", factor=3)
    until(lambda: fetch(f"{url}/my-scale/prediction", body) == {"result": {"y": [[3, 6, 9]]}})


def test_a_damaged_new_version_stops_no_later_start_and_is_reported(
    serve: Any, server: Target, namespace: str, tmp_path: Path
) -> None:
    root = tmp_path / "vv"
    for version in (1, 2):
        models.linear(root / str(version), factor=version)
    url = serve(str(root)).stdout.partition("is served at ")[2].split()[0]
    (root / "3").mkdir()
    (root / "3" / "model.onnx").write_text("junk")

    def command(*args: str) -> str:
        return pdc("-n", namespace, *args, env=server.env).stdout

    warning = f"the newest version is not served, version 2 is: {root}/3/model.onnx cannot be loaded"
    until(lambda: warning in command("explain", "pds/vv"))
    command("delete", "pods", "-l", "PaddleService=vv", "-y")
    body = json.dumps({"feed": [{"x": [1, 2, 3]}]}).encode()
    assert fetch(f"{url}/vv/prediction", body) == {"result": {"y": [[2, 4, 6]]}}
    assert command("explain", "pds/vv").startswith("pds/vv: ok (ModelWarning)\n")
    assert warning in command("describe", "pds/vv")
    models.linear(root / "3", factor=3)
    until(lambda: "ok (Ready)" in command("explain", "pds/vv"))


def test_a_model_that_cannot_be_loaded_ends_the_wait_with_its_reason(serve: Any, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "model.onnx").write_text("junk")
    failed = serve(str(folder), check=False)
    assert failed.returncode == 100
    assert f"{folder}/model.onnx cannot be loaded" in failed.stderr, "as its owner calls it"
    assert "next:  pdc describe pds/broken; to remove it: pdc delete pds/broken" in failed.stderr


def test_what_is_no_model_is_refused_before_anything_is_made(serve: Any, tmp_path: Path) -> None:
    failed = serve(str(tmp_path), check=False)
    assert failed.returncode == 5
    assert "that is no model" in failed.stderr
    assert "holds no model: expected inference.json" in failed.stderr


def test_a_service_that_is_refused_leaves_nothing_behind(serve: Any, server: Target, namespace: str) -> None:
    refused = serve("file:///etc/digits", check=False)
    assert refused.returncode == 5
    assert "folder /etc/digits is not below one that the operator allows" in refused.stderr
    assert pdc("-n", namespace, "get", "pds", "-o", "name", env=server.env).stdout == ""


def test_a_mistyped_folder_is_refused_where_there_is_no_model_store(
    serve: Any, server: Target, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.linear(tmp_path / "digits", factor=2)
    monkeypatch.chdir(tmp_path)
    refused = serve("digts", check=False)
    assert refused.returncode == 3
    assert 'there is no folder digts here: did you mean "digits"?' in refused.stderr
    assert pdc("-n", namespace, "get", "pds", "-o", "name", env=server.env).stdout == ""


def test_another_model_takes_the_place_of_a_service_only_by_its_name(
    serve: Any, server: Target, namespace: str, tmp_path: Path
) -> None:
    for team in ("ours", "theirs"):
        models.linear(tmp_path / team / "digits", factor=2)
    ours, theirs = (str(tmp_path / team / "digits") for team in ("ours", "theirs"))

    def served() -> str:
        model = pdc("-n", namespace, "get", "pds/digits", "-o", "jsonpath={.spec.model}", env=server.env).stdout
        return model.strip().removeprefix("file://")

    serve(ours, "-d")
    serve(ours, "-d", "--max", "2")
    refused = serve(theirs, "-d", check=False)
    assert refused.returncode == 4
    assert f"there is already a service digits, of the model file://{ours}" in refused.stderr
    assert "--name digits to change what it serves" in refused.stderr
    assert served() == ours
    assert f"served file://{ours} until now" in serve(theirs, "-d", "--name", "digits").stderr
    assert served() == theirs


def test_a_rollback_to_a_folder_says_when_its_files_have_changed_since(
    serve: Any, server: Target, namespace: str, tmp_path: Path
) -> None:
    old, new = tmp_path / "digits-1", tmp_path / "digits-2"
    models.linear(old / "1", factor=2)
    models.linear(new / "1", factor=3)

    def roll_back() -> str:
        done = pdc("-n", namespace, "rollback", "digits", env=server.env)
        assert f"(file://{old})" in done.stdout
        return done.stderr

    serve(str(old), "--name", "digits")
    serve(str(new), "--name", "digits")
    assert str(old) not in roll_back()
    serve(str(new), "--name", "digits")
    (old / "1" / "note.txt").write_text("written over")
    assert f"the folder {old} has changed since revision digits-default-" in roll_back()


@pytest.mark.parametrize("tool", ["pdc", "kubectl"])
def test_a_file_that_writes_spec_model_is_served_again_after_a_rollback(
    serve: Any, server: Target, kubectl: Kubectl, namespace: str, tmp_path: Path, tool: str
) -> None:
    for version, factor in (("m1", 2), ("m2", 3)):
        models.linear(tmp_path / version, factor=factor)
        body = {
            "apiVersion": "serving.paddlepaddle.org/v1",
            "kind": "PaddleService",
            "metadata": {"name": "rb"},
            "spec": {"model": f"file://{tmp_path / version}"},
        }
        (tmp_path / f"{version}.json").write_text(json.dumps(body))

    def command(*args: str) -> str:
        return pdc("-n", namespace, *args, env=server.env, timeout=150).stdout

    def apply(version: str) -> None:
        file = str(tmp_path / f"{version}.json")
        if tool == "pdc":
            command("apply", "-f", file, "--wait")
        else:
            kubectl("apply", "-f", file)
            command("wait", "pds/rb", "--for=condition=Ready", "--timeout=120s")

    for version in ("m1", "m2"):
        apply(version)
    command("rollback", "rb")
    apply("m2")
    url = command("get", "pds/rb", "-o", "jsonpath={.status.url}").strip()
    asked = json.dumps({"feed": [{"x": [1, 2, 3]}]}).encode()
    until(lambda: fetch(f"{url}/rb/prediction", asked) == {"result": {"y": [[3, 6, 9]]}})


def test_a_new_model_that_does_not_start_leaves_the_old_one_serving_and_its_file_applies(
    serve: Any, server: Target, namespace: str, tmp_path: Path
) -> None:
    """With a canary beside it, which a rollback would withdraw if the default had not failed."""
    models.linear(tmp_path / "m1", factor=2)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "model.onnx").write_text("junk")
    model = {"model": f"file://{tmp_path / 'm1'}"}
    body = {
        "apiVersion": "serving.paddlepaddle.org/v1",
        "kind": "PaddleService",
        "metadata": {"name": "can"},
        "spec": {"default": model, "canary": {**model, "port": 8081}, "canaryTrafficPercent": 10},
    }
    (tmp_path / "can.json").write_text(json.dumps(body))

    def command(*args: str) -> str:
        return pdc("-n", namespace, *args, env=server.env, timeout=150).stdout

    command("apply", "-f", str(tmp_path / "can.json"), "--wait")
    first = command("get", "pds/can", "-o", "jsonpath={.status.default.name}").strip()
    failed = serve(str(broken), "--name", "can", check=False)
    assert failed.returncode == 100
    assert "the new revision of paddleservice.serving.paddlepaddle.org/can does not answer" in failed.stderr
    assert f"{first} still serves" in failed.stderr
    assert "pdc rollback can" in failed.stderr
    assert "pdc delete" not in failed.stderr
    assert f"{first} still gets the traffic. To go back to it: pdc rollback can" in command("explain", "pds/can")
    assert f"to {first} " in command("rollback", "can")
    command("wait", "pds/can", "--for=condition=Ready", "--timeout=120s")
    serve(str(broken), "--name", "can", "-d")
    assert command("get", "pds/can", "-o", "jsonpath={.spec.default.model}").strip() == f"file://{broken}"
    command("apply", "-f", str(tmp_path / "can.json"), "--wait")
    assert json.loads(command("get", "pds/can", "-o", "jsonpath={.spec.default}")) == model


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("./out/My_Digits/", "my-digits"),
        ("https://example.com/models/digits.tar.gz", "digits"),
        ("http://example.com/models/digits.tar.gz#sha256=0123/", "digits"),
        ("digits:v3", "digits"),
        ("digits", "digits"),
        ("file:///models/digits", "digits"),
    ],
)
def test_a_service_is_called_after_its_model(model: str, name: str) -> None:
    assert _name(model) == name
