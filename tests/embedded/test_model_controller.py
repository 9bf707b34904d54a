"""Deletion, retention and recovery of versions on a platform, by kubectl and by `pdc model`: what is in use stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Kubectl, Target, until
from paddlecloud.cli.failures import CONFLICT, INVALID, NOT_FOUND, OK, USAGE
from paddlecloud.cli.main import main
from paddlecloud.modelhub import catalogue
from paddlecloud.modelhub.names import STORE_FOLDER
from paddlecloud.storage.stores import Store, open_store

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(main_context: None, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """With the platform's own store."""
    (tmp_path / "model").mkdir()

    def call(line: str) -> tuple[int, str, str]:
        code = main(["-n", namespace, "model", *line.split()])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture
def store(server: Target) -> Store:
    return open_store(f"file://{server.kubeconfig.parent / STORE_FOLDER}")


def pushed(run: Run, name: str, *, flags: str = "") -> None:
    Path("model/net.onnx").write_text(name)
    code, _, said = run(f"push {name} model{flags}")
    assert code == OK, said


def stored(store: Store, namespace: str) -> list[str]:
    return sorted(f"{each.model}:{each.version}" for each in catalogue.versions(store, namespace))


def test_a_deletion_by_kubectl_waits_while_the_version_is_in_use_and_takes_the_manifest_along(
    run: Run, kubectl: Kubectl, namespace: str, store: Store
) -> None:
    def found(what: str, path: str) -> str:
        return kubectl("-n", namespace, "get", what, "-o", f"jsonpath={{{path}}}", "--ignore-not-found").stdout

    for name in ("ocr:1", "ocr:2", "ocr:3"):
        pushed(run, name)
    assert run("promote ocr:1 --reason first")[1] == "ocr@production is now 1\n"
    until(lambda: found("modelversion/ocr.2", ".metadata.finalizers") != "")
    kubectl("-n", namespace, "delete", "modelversion", "ocr.2")
    assert stored(store, namespace) == ["ocr:1", "ocr:3"]

    serving = {
        "apiVersion": "serving.paddlepaddle.org/v1",
        "kind": "PaddleService",
        "metadata": {"name": "reader"},
        "spec": {"model": "ocr:1", "service": {"minScale": 0}},
    }
    kubectl("-n", namespace, "apply", "-f", "-", input=json.dumps(serving))
    code, _, said = run("rm ocr:1 -y")
    assert (code, "ocr:1 is in use by alias production, PaddleService reader" in said) == (CONFLICT, True), said
    code, _, said = run("rm ocr -y --force")
    assert (code, "PaddleService reader" in said) == (CONFLICT, True), said

    kubectl("-n", namespace, "delete", "modelversion", "ocr.1", "--wait=false")
    until(lambda: "alias production, PaddleService reader" in found("modelversion/ocr.1", ".status.message"))
    assert "PaddleService reader" in kubectl("-n", namespace, "describe", "modelversion", "ocr.1").stdout
    assert run("tag ocr:1 staging")[0] == NOT_FOUND, "it is being deleted"
    assert run("promote ocr:3 --reason better")[0] == OK
    until(lambda: found("modelversion/ocr.1", ".status.message").startswith("in use by PaddleService reader;"))
    assert stored(store, namespace) == ["ocr:1", "ocr:3"]
    kubectl("-n", namespace, "delete", "paddleservices.serving.paddlepaddle.org", "reader")
    until(lambda: found("modelversion/ocr.1", ".metadata.name") == "")
    assert stored(store, namespace) == ["ocr:3"]

    kubectl("-n", namespace, "delete", "model", "ocr", "--wait=false")
    until(lambda: "in use by alias production" in found("model/ocr", ".status.message"))
    assert run("untag ocr@production --reason over")[1] == "ocr@production is removed; it was 3\n"
    until(lambda: found("model/ocr", ".metadata.name") == "")
    assert found("modelversion/ocr.3", ".metadata.name") == ""
    assert stored(store, namespace) == []


def test_a_namespace_is_deleted_with_its_models_whatever_aliases_they_have(
    run: Run, kubectl: Kubectl, namespace: str, store: Store
) -> None:
    other = f"{namespace}-gone"
    kubectl("create", "namespace", other)
    pushed(run, "ocr:1", flags=f" -n {other}")
    assert run(f"promote ocr:1 -n {other}")[0] == OK
    until(lambda: kubectl("-n", other, "get", "model", "ocr", "-o", "jsonpath={.status.versions}").stdout == "1")
    kubectl("delete", "namespace", other)
    assert stored(store, other) == []


def test_retention_removes_what_nothing_uses_and_shows_what_comes_next(
    run: Run, kubectl: Kubectl, namespace: str, store: Store
) -> None:
    for number in range(1, 7):
        pushed(run, f"ocr:{number}")
    assert run("promote ocr:2")[0] == OK
    assert run("promote ocr:3")[0] == OK
    code, out, said = run("retain ocr --count 2")
    assert (code, out) == (OK, "ocr: the newest 2 are kept\n"), said
    until(lambda: stored(store, namespace) == ["ocr:2", "ocr:3", "ocr:5", "ocr:6"])
    events = kubectl("-n", namespace, "get", "events", "-o", "jsonpath={.items[*].message}").stdout
    assert "removed ocr:1, ocr:4: not one of the newest 2" in events
    shown = run("show ocr@production")[1]
    assert "Retention:   keeps the newest 2" in shown
    assert "keeps 3: alias production" in shown

    assert run("retain ocr --count 1 --age 30d")[0] == OK
    report = json.loads(run("show ocr -o json")[1])["retention"]
    assert (report["count"], report["age"]) == (1, "30d")
    verdicts = {each["version"]: each for each in report["versions"]}
    assert verdicts["5"]["reason"] == "older than 30d and not one of the newest 1"
    assert "removedAt" in verdicts["5"]
    assert {name: each.get("kept") for name, each in verdicts.items()} == {
        "6": "it is the newest", "5": None, "3": "alias production", "2": "rollback of production",
    }  # fmt: skip
    assert "removes 5 in 29d" in run("show ocr")[1]
    until(lambda: "5" in kubectl("-n", namespace, "get", "model", "ocr", "-o", "jsonpath={.status.nextRemoval}").stdout)
    assert run("retain ocr --everything")[0] == OK
    assert "Retention" not in run("show ocr")[1]


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("retain ocr --count 0 --age 1d", INVALID, "spec.retention.count"),
        ("retain ocr --age 30", INVALID, "spec.retention.age"),
        ("retain ocr", USAGE, "--count, --age or both"),
        ("retain ocr --everything --count 3", USAGE, "--count, --age or both"),
        ("retain nothing --count 3", NOT_FOUND, "no model nothing"),
        ("promote ocr:9", NOT_FOUND, "no version 9"),
        ("promote ocr:1 --to 7", INVALID, "beginning with a letter"),
        ("rollback ocr@production", NOT_FOUND, "no alias production; it has latest"),
        ("rollback ocr@latest", NOT_FOUND, "no version before this one"),
        ("rollback ocr", INVALID, "names no alias"),
        ("untag ocr@production", NOT_FOUND, "no alias production"),
        ("untag ocr:1", INVALID, "names no alias"),
        ("tag ocr:1 production --to x", USAGE, "it is for model promote"),
    ],
)
def test_what_is_refused_says_why(run: Run, line: str, code: int, text: str) -> None:
    pushed(run, "ocr:1")
    found, _, said = run(line)
    assert (found, text in said) == (code, True), said
    assert "Traceback" not in said


def test_a_rollback_goes_back_along_the_history_and_leaves_out_what_is_gone(run: Run) -> None:
    for number in range(1, 5):
        pushed(run, f"ocr:{number}")
        assert run(f"promote ocr:{number}")[0] == OK
    assert run("rollback ocr@production --reason slow")[1] == "ocr@production is now 3; it was 4\n"
    assert run("rm ocr:2 -y")[0] == OK
    code, out, said = run("rollback ocr@production")
    assert (code, out) == (OK, "ocr@production is now 1; it was 3\n"), said
    assert "ocr:2 no longer exists and is left out" in said
    assert run("rollback ocr@production")[0] == NOT_FOUND
    moves = json.loads(run("show ocr:3 -o json")[1])["moves"]
    assert [(m["to"], m.get("rollback"), m.get("reason")) for m in moves if m["alias"] == "production"] == [
        ("1", True, "rollback"), ("3", True, "slow"), ("4", None, None), ("3", None, None),
    ]  # fmt: skip
    assert run("rm ocr -y --force")[0] == OK


def test_a_version_whose_manifest_is_gone_is_reported_and_cannot_be_promoted(
    run: Run, kubectl: Kubectl, namespace: str, store: Store
) -> None:
    def status(name: str) -> Any:
        found = json.loads(kubectl("-n", namespace, "get", "modelversion", name, "-o", "json").stdout)
        return found.get("status") or {}

    pushed(run, "ocr:1")
    spec = json.loads(kubectl("-n", namespace, "get", "modelversion", "ocr.1", "-o", "json").stdout)["spec"]
    lost = {
        "apiVersion": "modelhub.paddlepaddle.org/v1alpha1",
        "kind": "ModelVersion",
        "metadata": {"name": "ocr.2", "labels": {"modelhub.paddlepaddle.org/model": "ocr"}},
        "spec": {**spec, "version": "2"},
    }
    kubectl("-n", namespace, "apply", "-f", "-", input=json.dumps(lost))
    until(lambda: status("ocr.2").get("phase") == "Lost")
    code, _, said = run("promote ocr:2")
    assert (code, "push the same files again" in said) == (NOT_FOUND, True)
    assert status("ocr.1") == {}
    kubectl("-n", namespace, "delete", "modelversion", "ocr.2")
