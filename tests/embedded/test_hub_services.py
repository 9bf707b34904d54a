"""Versions of the ModelHub behind a URL, on the embedded platform: pinned, followed, and on a node once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import paddlecloud as pc
from embedded.hub_world import FEED, KIND, Run, factor, follows_its_alias, push_two, sent, served
from embedded.serving_world import ask, read
from harness import Completed, Kubectl, Target, pdc, until

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def run(server: Target, namespace: str) -> Iterator[Run]:
    server.offer("paddlecloud/serving:latest")

    def call(*args: str, check: bool = True) -> Completed:
        return pdc("-n", namespace, *args, env=server.env, check=check, timeout=150)

    yield call
    pdc("-n", namespace, "delete", "pds", "--all", "-y", env=server.env)


def files_sent(kubectl: Kubectl) -> int:
    """By the hub's own metrics, at the port that its Service leads to."""
    place = kubectl("get", "endpointslice", "modelhub", "-n", "kube-system", "-o", "jsonpath={.ports[0].port}").stdout
    status, metrics = ask(f"http://127.0.0.1:{place}", "/metrics")
    assert status == 200
    return sent(metrics)


def answer(url: str) -> str:
    status, text = ask(url, "/ocr/prediction", body=FEED, extra={"Content-Type": "application/json"})
    assert status == 200, text
    return factor(text)


def test_a_followed_alias_is_rolled_out_and_back_and_replicas_share_the_files(
    run: Run, kubectl: Kubectl, tmp_path: Path
) -> None:
    push_two(run, tmp_path)
    before = files_sent(kubectl)
    said = run("serve", "ocr@production", "--follow", "--min", "1").stdout
    assert "it serves ocr:1" in said
    url = str(read(kubectl, KIND, "ocr")["status"]["url"])
    assert files_sent(kubectl) == before + 1
    follows_its_alias(run, kubectl, url)
    assert files_sent(kubectl) == before + 2, "each version once"
    wide = kubectl("get", KIND, "-o", "wide").stdout
    assert "ocr:1" in wide
    assert "default: ocr:1 (sha256:" in run("explain", "pds/ocr", "--lang", "en").stdout
    assert "gets 100 % of the traffic, since" in run("describe", "pds/ocr").stdout

    kubectl("scale", f"{KIND}/ocr", "--replicas=2")
    until(lambda: read(kubectl, KIND, "ocr")["status"]["default"].get("replicas") == 2, timeout=120)
    assert files_sent(kubectl) == before + 2, "the second replica copies nothing"
    pods = read(kubectl, "pods", "-l", "PaddleService=ocr")["items"]
    logs = [kubectl("logs", pod["metadata"]["name"]).stdout for pod in pods if pod["status"]["phase"] == "Running"]
    assert sum("its files were on the node" in text for text in logs) >= 2


def test_without_follow_the_version_stays_until_it_is_taken_up(run: Run, kubectl: Kubectl, tmp_path: Path) -> None:
    push_two(run, tmp_path)
    run("serve", "ocr@production")
    url = str(read(kubectl, KIND, "ocr")["status"]["url"])
    run("model", "tag", "ocr:2", "production")
    until(lambda: "points to version 2 now" in run("explain", "pds/ocr", "--lang", "en").stdout, timeout=60)
    assert (answer(url), served(kubectl)) == ("1", [("1", 100)])
    run("retry", "pds/ocr")
    until(lambda: served(kubectl) == [("2", 100)], timeout=120)
    until(lambda: answer(url) == "2")
    run("model", "tag", "ocr:1", "production")
    until(lambda: "points to version 1 now" in run("explain", "pds/ocr", "--lang", "en").stdout, timeout=60)
    run("serve", "ocr@production")  # the same command again
    assert served(kubectl) == [("1", 100)]
    run("rollback", "ocr")
    until(lambda: served(kubectl) == [("2", 100)], timeout=120)
    assert read(kubectl, KIND, "ocr")["spec"]["model"] == "ocr:2"


def test_what_is_lost_is_said_and_what_serves_goes_on(
    run: Run, kubectl: Kubectl, server: Target, namespace: str, tmp_path: Path
) -> None:
    push_two(run, tmp_path)
    client = pc.connect(kubeconfig=server.kubeconfig, namespace=namespace)
    service = client.models.serve("ocr:1", min_scale=1)
    service.wait_for("Ready", timeout=120)
    url = str(read(kubectl, KIND, "ocr")["status"]["url"])
    refused = run("serve", "ocr@nobody", check=False)
    assert refused.returncode == 3
    assert "model ocr has no alias nobody; it has latest, production" in refused.stderr
    run("model", "tag", "ocr:2", "production")
    kept = run("model", "rm", "ocr:1", "-y", check=False)
    assert kept.returncode == 4
    assert "ocr:1 is in use by PaddleService ocr" in kept.stderr
    kubectl("delete", "modelversion", "ocr.1", "--wait=false")
    kubectl("patch", "modelversion", "ocr.1", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    until(lambda: "VersionNotFound" in kubectl("get", KIND, "ocr", "-o", "yaml").stdout, timeout=60)
    assert answer(url) == "1"
    kubectl("patch", KIND, "ocr", "--type=merge", "-p", '{"spec":{"model":"ocr@gone"}}')
    until(lambda: "AliasNotFound" in kubectl("get", KIND, "ocr", "-o", "yaml").stdout, timeout=60)
    assert answer(url) == "1", "what serves goes on"
    message = kubectl("patch", KIND, "ocr", "--type=merge", "-p", '{"spec":{"model":"OCR@x"}}', check=False).stderr
    assert "the name of a model is NAME:VERSION or NAME@ALIAS, as ocr:7 or ocr@production" in message


def test_files_that_the_store_has_damaged_are_not_served(
    run: Run, kubectl: Kubectl, server: Target, namespace: str, tmp_path: Path
) -> None:
    push_two(run, tmp_path)
    run("serve", "ocr:1", "--min", "1")
    url = str(read(kubectl, KIND, "ocr")["status"]["url"])
    store = Path(server.kubeconfig).parent / "models"
    version = read(kubectl, "modelversion", "ocr.2")
    assert version["spec"]["files"] == 1
    damaged = [path for path in (store / "blobs").rglob("*") if path.is_file()]
    assert damaged
    copies = {path: path.read_bytes() for path in damaged}
    try:
        for path, content in copies.items():
            path.chmod(0o600)
            path.write_bytes(b"x" * len(content))
        failed = run("serve", "ocr:2", check=False)
        assert failed.returncode == 100
        assert "ocr:2 cannot be fetched" in failed.stderr
        assert "pdc model verify ocr:2" in failed.stderr
        assert answer(url) == "1", "what serves goes on"
    finally:
        for path, content in copies.items():
            path.write_bytes(content)
    run("retry", "pds/ocr")
    until(lambda: served(kubectl) == [("2", 100)], timeout=120)
    shutil.rmtree(tmp_path / "model-1")
