"""Versions of models from push to removal: kept while something uses them, removed with their manifest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Kubectl, Target, until
from paddlecloud.modelhub import catalogue

from .model_stores import ModelStore, model_store

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operators")]

CONFLICT = 4


@pytest.fixture
def hub(server: Target, kubectl_binary: str, tmp_path: Path) -> Iterator[ModelStore]:
    with model_store(server, kubectl_binary, tmp_path) as found:
        yield found


@pytest.fixture
def pdc(hub: ModelStore, namespace: str, tmp_path: Path) -> Callable[..., str]:
    def run(*words: str, exits: int = 0) -> str:
        """Its output, or what it says about its failure."""
        command = [sys.executable, "-m", "paddlecloud.cli.main", "-n", namespace, *words]
        done = subprocess.run(command, env=hub.env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == exits, f"pdc {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stderr if exits else done.stdout

    return run


def serving(name: str, model: str) -> str:
    kind = {"apiVersion": "serving.paddlepaddle.org/v1", "kind": "PaddleService", "metadata": {"name": name}}
    return json.dumps({**kind, "spec": {"model": model, "service": {"minScale": 0}}})


def test_a_version_is_kept_while_it_is_used_and_goes_with_its_manifest(
    pdc: Callable[..., str], hub: ModelStore, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    def stored() -> list[str]:
        return sorted(each.version for each in catalogue.versions(hub.store, namespace, "ocr"))

    def status(what: str) -> Any:
        found = kubectl("get", what, "-o", "json", "--ignore-not-found").stdout
        return (json.loads(found).get("status") or {}) if found else None

    for number in range(1, 6):
        (tmp_path / "net.onnx").write_text(f"weights {number}")
        pdc("model", "push", f"ocr:{number}", "net.onnx")
    pdc("model", "promote", "ocr:1", "--reason", "first release")
    until(lambda: (status("model/ocr") or {}).get("versions") == 5)
    kubectl("apply", "-f", "-", input=serving("reader", "ocr:2"))

    refused = pdc("model", "rm", "ocr:2", "-y", exits=CONFLICT)
    assert "PaddleService reader" in refused
    for number, user in ((1, "alias production"), (2, "PaddleService reader")):
        kubectl("delete", "modelversion", f"ocr.{number}", "--wait=false")
        until(lambda n=number, user=user: user in (status(f"modelversion/ocr.{n}") or {}).get("message", ""))
    assert stored() == ["1", "2", "3", "4", "5"]
    pdc("model", "promote", "ocr:4", "--reason", "better")
    kubectl("delete", "paddleservices.serving.paddlepaddle.org", "reader")
    until(lambda: status("modelversion/ocr.1") is None and status("modelversion/ocr.2") is None)
    assert stored() == ["3", "4", "5"]

    pdc("model", "retain", "ocr", "--count", "1")
    until(lambda: stored() == ["4", "5"])  # production and the newest
    until(lambda: "removed ocr:3: not one of the newest 1" in kubectl("get", "events").stdout)
    pdc("model", "promote", "ocr:5", "--reason", "the newest")
    assert pdc("model", "rollback", "ocr@production") == "ocr@production is now 4; it was 5\n"

    kubectl("delete", "model", "ocr", "--wait=false")
    until(lambda: "alias production" in (status("model/ocr") or {}).get("message", ""))
    pdc("model", "untag", "ocr@production", "--reason", "no longer served")
    until(lambda: status("model/ocr") is None)
    assert (stored(), kubectl("get", "modelversions", "-o", "name").stdout) == ([], "")


def test_rules_of_the_api_server_keep_histories_and_refuse_a_wrong_retention(
    pdc: Callable[..., str], kubectl: Kubectl, tmp_path: Path
) -> None:
    (tmp_path / "net.onnx").write_text("weights")
    pdc("model", "push", "ocr:1", "net.onnx", "--alias", "staging")
    pdc("model", "promote", "ocr:1")
    spec = json.loads(kubectl("get", "model", "ocr", "-o", "json").stdout)["spec"]
    entry = {"alias": "staging", "previous": "1", "by": "ada", "at": "2026-11-18T12:00:00Z"}
    for change, text in (
        ({"aliases": {"staging": None}}, "moved or removed together with an entry"),
        ({"aliases": {"staging": None, "production": None}, "moves": [*spec["moves"], entry]}, "one alias at a time"),
        ({"moves": [*spec["moves"], entry]}, "must say where its alias points now"),
        (
            {"aliases": {"staging": "2"}, "moves": [*spec["moves"], {**entry, "alias": "latest"}]},
            "are in spec.latestMoves",
        ),
        ({"retention": {}}, "say how many versions are kept"),
        ({"retention": {"count": 0}}, "spec.retention.count"),
        ({"retention": {"age": "a month"}}, "spec.retention.age"),
    ):
        patch = json.dumps({"spec": change})
        refused = kubectl("patch", "model", "ocr", "--type=merge", "-p", patch, check=False)
        assert (refused.returncode, text in refused.stderr) == (1, True), (change, refused.stderr)
    allowed = {"aliases": {"staging": None}, "moves": [*spec["moves"], entry], "retention": {"count": 3, "age": "30d"}}
    kubectl("patch", "model", "ocr", "--type=merge", "-p", json.dumps({"spec": allowed}))
    pdc("model", "rm", "ocr", "-y", "--force")
