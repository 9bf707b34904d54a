"""The model hub of a platform: tenants push and pull with their own tokens, and see nothing of other tenants.

On a cluster it is the chart's Deployment on a bucket.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from harness import Kubectl, Target, namespace_on, pdc, until
from paddlecloud.modelhub import names, remote
from paddlecloud.modelhub.catalogue import VersionKey
from paddlecloud.modelhub.manifest import Facts
from paddlecloud.modelhub.push import read_local
from paddlecloud.modelhub.remote import RemoteHub
from paddlecloud.serving.errors import ModelError
from paddlecloud.serving.source import local_folder

from .hands import apply, read
from .model_stores import UPLOADER, ModelStore, model_store

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operators")]

FACTS = Facts("", "")
LARGE = 3 << 20


class Team(NamedTuple):
    namespace: str
    token: str
    kubeconfig: Path

    def env(self, hub: str) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), names.VARIABLE: hub}


@pytest.fixture
def models(server: Target, kubectl_binary: str, tmp_path: Path) -> Iterator[ModelStore]:
    with model_store(server, kubectl_binary, tmp_path) as found:
        yield found


@pytest.fixture
def hub(models: ModelStore) -> str:
    return models.hub


def team(server: Target, kubectl: Kubectl, namespace: str, folder: Path) -> Team:
    """An account that may work in one namespace, and a kubeconfig that holds nothing but its token."""
    kubectl("create", "serviceaccount", "member", "-n", namespace)
    account = f"--serviceaccount={namespace}:member"
    kubectl("create", "rolebinding", "member", "--clusterrole=edit", account, "-n", namespace)
    token = kubectl("create", "token", "member", "-n", namespace).stdout.strip()
    whole = json.loads(kubectl("config", "view", "--raw", "-o", "json").stdout)
    for user in whole["users"]:
        user["user"] = {"token": token}
    path = folder / f"{namespace}.kubeconfig"
    path.write_text(json.dumps(whole))
    return Team(namespace, token, path)


@pytest.fixture
def teams(server: Target, kubectl: Kubectl, namespace: str, tmp_path: Path) -> Iterator[tuple[Team, Team]]:
    with namespace_on(server) as other:
        yield team(server, kubectl, namespace, tmp_path), team(server, kubectl, other, tmp_path)


def model(folder: Path) -> Path:
    (folder / "conf").mkdir(parents=True)
    (folder / "net.onnx").write_bytes(os.urandom(300_000))
    (folder / "conf" / "a.txt").write_text("a\n")
    return folder


def test_tenants_push_and_pull_with_their_tokens_and_see_nothing_of_others(
    hub: str, teams: tuple[Team, Team], tmp_path: Path
) -> None:
    own, other = teams
    content = model(tmp_path / "model")
    pushed = pdc("-n", own.namespace, "model", "push", "ocr", str(content), env=own.env(hub))
    assert pushed.stdout.startswith("ocr:1 pushed: 2 files")
    again = pdc("-n", own.namespace, "model", "push", "ocr:1", str(content), env=own.env(hub))
    assert "is there already, with the same files" in again.stdout
    pulled = tmp_path / "pulled"
    pdc("-n", own.namespace, "model", "pull", "ocr@latest", str(pulled), env=own.env(hub))
    assert (pulled / "net.onnx").read_bytes() == (content / "net.onnx").read_bytes()
    refused = pdc("-n", own.namespace, "model", "pull", "ocr:1", str(tmp_path / "x"), env=other.env(hub), check=False)
    assert refused.returncode == 6, refused.stderr
    for address, token in ((f"{hub}/v1/namespaces/{own.namespace}/models/ocr/versions/1", other.token),):
        assert curl(address, token)[0] == 403
        assert curl(address, "")[0] == 401
    removed = pdc("-n", own.namespace, "model", "rm", "ocr", "-y", "--force", env=own.env(hub), check=False)
    assert removed.returncode == 0, removed.stderr
    assert curl(f"{hub}/v1/namespaces/{own.namespace}/models/ocr/versions", own.token)[1] == '{"versions": []}'


def test_the_original_s_address_is_served_to_curl_and_to_the_inference_server(
    hub: str, teams: tuple[Team, Team], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, _ = teams
    content = model(tmp_path / "model")
    pdc("-n", own.namespace, "model", "push", "ocr", str(content), env=own.env(hub))
    address = f"{hub}/namespaces/{own.namespace}/model-center/ocr/latest"
    archive = tmp_path / "ocr.tar.gz"
    code, _ = curl(f"{address}/ocr.tar.gz", own.token, "-o", str(archive))
    assert code == 200
    sha256 = json.loads(curl(f"{address}/manifest.json", own.token)[1])["sha256"]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == sha256
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "xzf", str(archive), "-C", str(unpacked)], check=True)
    assert (unpacked / "conf" / "a.txt").read_text() == "a\n"
    monkeypatch.setenv("PADDLECLOUD_MODEL_ENDPOINT", f"{hub}/namespaces/{own.namespace}")
    with pytest.raises(ModelError, match="401"):
        local_folder("ocr:1", tmp_path / "cache")
    monkeypatch.setenv(names.TOKEN_VARIABLE, own.token)
    found = local_folder("ocr:1", tmp_path / "cache")
    assert (found.folder / "net.onnx").read_bytes() == (content / "net.onnx").read_bytes()


def curl(address: str, token: str, *options: str) -> tuple[int, str]:
    given = ["-H", f"Authorization: Bearer {token}"] if token else []
    command = ["curl", "-s", "-w", "\n%{http_code}", *given, *options, address]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    body, _, code = said.rpartition("\n")
    return int(code), body


def test_an_upload_that_was_killed_continues_where_it_stopped(
    hub: str, teams: tuple[Team, Team], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, _ = teams
    (tmp_path / "big").mkdir()
    (tmp_path / "big" / "weights.onnx").write_bytes(os.urandom(LARGE + 100))
    command = [sys.executable, "-c", UPLOADER, hub, own.token, own.namespace, str(tmp_path / "big")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"half\n"
        killed.send_signal(signal.SIGKILL)
    sent: list[int] = []
    send = RemoteHub._send_from
    monkeypatch.setattr(remote, "PART", 1 << 20)

    def noted(self: RemoteHub, *args: object) -> None:
        sent.append(int(str(args[3])))
        send(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(RemoteHub, "_send_from", noted)
    client = RemoteHub(hub, own.token)
    local = read_local(tmp_path / "big")
    assert client.push(own.namespace, "big", "1", local, FACTS).created
    assert sent == [2 << 20, LARGE]
    again = pdc("-n", own.namespace, "model", "push", "big:1", str(tmp_path / "big"), env=own.env(hub))
    assert "is there already, with the same files" in again.stdout
    which = VersionKey(own.namespace, "big", "1")
    stored = client.manifest(which)
    assert b"".join(client.read(which, stored.files[0])) == (tmp_path / "big" / "weights.onnx").read_bytes()


def test_pods_find_the_hub_by_the_name_of_its_service(models: ModelStore, kubectl: Kubectl) -> None:
    command = ["wget", "-q", "-O", "-", f"http://{names.SERVICE}.{models.namespace}:{names.PORT}/healthz"]
    container = {"name": "main", "image": "busybox", "command": command}
    spec = {"containers": [container], "restartPolicy": "Never"}
    apply(kubectl, json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asks"}, "spec": spec}))
    until(lambda: read(kubectl, "pod", "asks")["status"].get("phase"), "Succeeded")
    assert kubectl("logs", "asks").stdout == "ok\n"
