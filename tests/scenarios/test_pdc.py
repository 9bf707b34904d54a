"""`pdc` on a context that somebody else made: its object commands need nothing of the embedded platform.

Credentials come as they do from clouds and administrators: printed by a plugin, or as a certificate in files beside the
kubeconfig.
"""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from harness import Kubectl, Target
from paddlecloud.cli.main import main
from paddlecloud.local.apiserver.http.certs import CertPaths, issue_client

pytestmark = pytest.mark.core


class Said(NamedTuple):
    code: int
    out: str
    err: str


Pdc = Callable[..., Said]


def plugin(server: Target, kubectl: Kubectl, folder: Path) -> dict[str, Any]:
    """A program that prints the token of an account that may edit this namespace and nothing else."""
    kubectl("create", "serviceaccount", "robot")
    namespace = kubectl("get", "serviceaccount", "robot", "-o", "jsonpath={.metadata.namespace}").stdout
    kubectl("create", "rolebinding", "robot", "--clusterrole=edit", f"--serviceaccount={namespace}:robot")
    version = "client.authentication.k8s.io/v1"
    token = kubectl("create", "token", "robot").stdout.strip()
    printed = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}})
    program = folder / "bin" / "login"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho {shlex.quote(printed)}\n")
    program.chmod(0o700)
    return {"exec": {"apiVersion": version, "command": "./bin/login", "interactiveMode": "Never"}}


def certificate(server: Target, kubectl: Kubectl, folder: Path) -> dict[str, Any]:
    """The administrator's of a cluster; on the embedded platform, one that its authority signs."""
    if server.embedded:
        pair = issue_client(CertPaths.under(server.kubeconfig.parent / "pki"), "eve", ["system:masters"])
        (folder / "client.crt").write_bytes(pair.cert)
        (folder / "client.key").write_bytes(pair.key)
    else:
        user = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]
        (folder / "client.crt").write_bytes(base64.b64decode(user["client-certificate-data"]))
        (folder / "client.key").write_bytes(base64.b64decode(user["client-key-data"]))
    return {"client-certificate": "client.crt", "client-key": "client.key"}


@pytest.fixture(params=[plugin, certificate], ids=["a plugin", "a certificate"])
def foreign(
    request: pytest.FixtureRequest,
    server: Target,
    kubectl: Kubectl,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Pdc:
    """pdc in the test's namespace, which only the kubeconfig names."""
    user = request.param(server, kubectl, tmp_path)
    given = yaml.safe_load(server.kubeconfig.read_text())
    config = {
        "current-context": "theirs",
        "contexts": [{"name": "theirs", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
        "clusters": [{"name": "c", "cluster": given["clusters"][0]["cluster"]}],
        "users": [{"name": "u", "user": user}],
    }
    (tmp_path / "theirs.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "theirs.yaml"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(*arguments: str) -> Said:
        code = main(list(arguments))
        return Said(code, *capsys.readouterr())

    return run


def manifest(folder: Path, value: str) -> str:
    path = folder / f"{value}.yaml"
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": value}}
    path.write_text(yaml.safe_dump(obj))
    return str(path)


def test_every_object_command_works_on_a_foreign_context(foreign: Pdc, tmp_path: Path, namespace: str) -> None:
    first, second = manifest(tmp_path, "1"), manifest(tmp_path, "2")
    steps: list[tuple[list[str], int, str]] = [
        (["get", "cm/c"], 3, 'configmaps "c" not found'),
        (["apply", "-f", first, "--dry-run=server"], 0, "configmap/c created (server dry run)"),
        (["apply", "-f", first], 0, "configmap/c created"),
        (["apply", "-f", first], 0, "configmap/c unchanged"),
        (["diff", "-f", second], 1, "+  a: '2'"),
        (["apply", "-f", second], 0, "configmap/c configured"),
        (["apply", "-f", first, "--field-manager=other"], 4, "--force-conflicts"),
        (["get", "cm", "c", "-o", "name"], 0, "configmap/c\n"),
        (["get", "cm/c", "-o", "jsonpath={.data.a}"], 0, "2"),
        (["get", "cm/c", "-o", "custom-columns=N:.metadata.name,A:.data.a", "--no-headers"], 0, "c   2\n"),
        (["get", "cm", "-o", "wide"], 0, "NAME"),
        (["describe", "cm/c"], 0, "Name:"),
        (["wait", "cm/c", "--for=jsonpath={.data.a}=2", "--timeout=60s"], 0, "configmap/c"),
        (["wait", "cm/c", "--for=jsonpath={.data.a}=3", "--timeout=0"], 124, "timed out"),
        (["explain", "pod.spec.containers"], 0, "imagePullPolicy"),
        (["events"], 0, ""),
        (["get", "nothings"], 3, "pdc api-resources"),
        (["delete", "cm/c"], 2, "-y"),
        (["delete", "cm/c", "-y"], 0, "configmap/c deleted"),
        (["delete", "cm/c", "-y"], 3, "--ignore-not-found"),
    ]
    for arguments, code, text in steps:
        said = foreign(*arguments)
        assert (said.code, text in said.out + said.err) == (code, True), (arguments, said)
    assert foreign("get", "cm", "-o", "json").out.count('"kind": "List"') == 1
    assert yaml.safe_load(foreign("get", "cm", "-o", "yaml").out)["kind"] == "List"


@pytest.mark.parametrize("foreign", [plugin], indirect=True, ids=["a plugin"])
def test_what_the_credentials_do_not_allow_is_exit_6(foreign: Pdc) -> None:
    refused = foreign("get", "clusterroles")
    assert refused.code == 6
    assert "robot" in refused.err
