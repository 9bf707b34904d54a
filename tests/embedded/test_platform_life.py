"""The platform as a process: one per directory, honest about parts that fail, back on the same port."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import need, pdc, until
from paddlecloud.cli.main import main
from paddlecloud.local.control_plane import ControlPlane, PlatformError
from paddlecloud.platform import endpoint, kubeconfig
from tools.ports import free_port


async def test_a_part_that_fails_is_not_hidden(inner: ControlPlane) -> None:
    async def broken() -> None:
        raise RuntimeError("out of luck")

    task = inner.spawn(broken())
    with pytest.raises(RuntimeError):
        await task
    assert inner.failed.is_set()


async def test_a_directory_has_one_platform(inner: ControlPlane) -> None:
    with pytest.raises(PlatformError, match="already runs on .*pdc down"):
        ControlPlane(inner.data)


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "data"
    pdc("down", "--data", str(tmp_path / "data"))


def test_up_is_idempotent_and_several_platforms_run_side_by_side(data: Path, tmp_path: Path) -> None:
    first = json.loads(pdc("up", "--data", str(data), "--port", "0", "-o", "json").stdout)
    again = json.loads(pdc("up", "--data", str(data), "-o", "json").stdout)
    assert (again["started"], again["url"], again["pid"]) == (False, first["url"], first["pid"])
    other = tmp_path / "other"
    second = json.loads(pdc("up", "--data", str(other), "--port", "0", "-o", "json").stdout)
    try:
        assert second["url"] != first["url"]
    finally:
        pdc("down", "--data", str(other))


def test_after_a_crash_it_comes_back_on_its_port_with_its_objects(data: Path) -> None:
    first = json.loads(pdc("up", "--data", str(data), "--port", "0", "-o", "json").stdout)
    env = {**os.environ, "KUBECONFIG": first["kubeconfig"]}
    pdc("apply", "-f", "-", env=env, input='{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}}')
    os.kill(first["pid"], signal.SIGKILL)
    until(lambda: not Path(f"/proc/{first['pid']}").exists())
    status = pdc("status", "--data", str(data), check=False)
    assert status.returncode == 7
    assert "crashed" in status.stdout
    second = json.loads(pdc("up", "--data", str(data), "-o", "json").stdout)
    assert second["url"] == first["url"]
    assert "namespace/kept" in pdc("get", "namespaces", "-o", "name", env=env).stdout


def test_a_copied_kubeconfig_goes_on_working_after_down_and_up(data: Path, tmp_path: Path) -> None:
    first = json.loads(pdc("up", "--data", str(data), "-o", "json").stdout)
    copied = tmp_path / "copied"
    copied.write_text(Path(first["kubeconfig"]).read_text())
    pdc("down", "--data", str(data))
    second = pdc("up", "--data", str(data), "-o", "json")
    assert json.loads(second.stdout)["url"] == first["url"]
    assert "Warning" not in second.stderr
    assert pdc("get", "nodes", "-o", "name", "--kubeconfig", str(copied)).stdout.startswith("node/")


def test_a_port_in_use_by_another_program_is_named_and_used_again_when_it_is_free(data: Path) -> None:
    first = json.loads(pdc("up", "--data", str(data), "-o", "json").stdout)
    port = int(first["url"].rpartition(":")[2])
    pdc("down", "--data", str(data))
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        for again in ("started", "already running"):
            moved = pdc("up", "--data", str(data))
            assert moved.stdout.startswith(again)
            assert f"port {port} of this platform was in use by another program" in moved.stderr
            assert f"port {port} and do not reach it" in moved.stderr
            assert f"127.0.0.1:{port} " not in moved.stdout
        assert pdc("get", "nodes", "--kubeconfig", str(data / "kubeconfig")).returncode == 0
        pdc("down", "--data", str(data))
    back = pdc("up", "--data", str(data), "-o", "json")
    assert json.loads(back.stdout)["url"] == first["url"]
    assert "Warning" not in back.stderr


def test_a_port_of_pipelines_that_another_program_holds_is_given_up(data: Path) -> None:
    """Who holds it may receive the tokens of scripts that name it."""
    first = json.loads(pdc("up", "--data", str(data), "-o", "json").stdout)["pipelines"]
    pdc("down", "--data", str(data))
    port = int(first.rpartition(":")[2])
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        moved = pdc("up", "--data", str(data))
        assert f"port {port} of the pipelines' API was in use by another program" in moved.stderr
        assert first not in moved.stdout
        pdc("down", "--data", str(data))
    again = pdc("up", "--data", str(data))
    assert again.stdout.partition("pipelines: ")[2].split()[0] == moved.stdout.partition("pipelines: ")[2].split()[0]
    assert "Warning" not in again.stderr


def test_up_says_which_context_it_replaces_and_down_brings_it_back(data: Path, tmp_path: Path) -> None:
    config = tmp_path / "config"
    cluster = {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "prod",
        "clusters": [{"name": "prod", "cluster": cluster}],
        "users": [{"name": "prod", "user": {"token": "t"}}],
        "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "prod"}}],
    }
    config.write_text(json.dumps(content))
    up = pdc("up", "--data", str(data), "--port", "0", "--kubeconfig", str(config))
    assert "kubectl config use-context prod" in up.stderr
    assert "current-context: paddlecloud-local" in config.read_text()
    found = pdc("status", "--data", str(data), "-o", "jsonpath={.state}").stdout
    assert found.strip() == "running"
    assert 'is "prod" again' in pdc("down", "--data", str(data)).stderr
    assert "current-context: prod" in config.read_text()


def test_another_port_is_kept_from_then_on(data: Path) -> None:
    chosen = free_port()
    pdc("up", "--data", str(data))
    pdc("down", "--data", str(data))
    pdc("up", "--data", str(data), "--port", str(chosen))
    pdc("down", "--data", str(data))
    assert json.loads(pdc("up", "--data", str(data), "-o", "json").stdout)["url"] == f"https://127.0.0.1:{chosen}"


def test_a_divided_machine_stays_divided_until_changed(data: Path) -> None:
    def nodes(*flags: str) -> list[str]:
        answer = json.loads(pdc("up", "--data", str(data), *flags, "-o", "json").stdout)
        env = {**os.environ, "KUBECONFIG": answer["kubeconfig"]}
        return pdc("get", "nodes", "-o", "name", env=env).stdout.split()

    first = nodes("--port", "0", "--nodes", "2", "--simulated", "2")
    assert len(first) == 4
    assert {"node/simulated-1", "node/simulated-2"} < set(first)
    refused = pdc("up", "--data", str(data), "--nodes", "3", check=False)
    assert refused.returncode == 4
    assert "as 2 nodes" in refused.stderr
    assert f"pdc down --data {data}" in refused.stderr
    pdc("node", "add", "extra", "--capacity", "cpu=1", "--kubeconfig", str(data / "kubeconfig"))
    pdc("down", "--data", str(data))
    assert sorted(nodes()) == sorted(["node/extra", *first]), "no flag said otherwise"
    pdc("down", "--data", str(data))
    until(lambda: len(nodes("--nodes", "1", "--simulated", "0")) == 2)


def test_a_port_in_use_is_a_clear_error(data: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = pdc("up", "--data", str(data), "--port", str(port), check=False)
    assert refused.returncode == 4
    assert f"127.0.0.1:{port}" in refused.stderr
    assert endpoint.find(data) is None


def test_a_start_that_takes_long_says_so_and_one_given_up_leaves_nothing(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No machine starts it within a millisecond."""
    monkeypatch.setattr("paddlecloud.platform.lifecycle.REPORT_EVERY", 0.001)
    assert main(["up", "--data", str(data), "--port", "0"]) == 0
    assert "starting the platform: 0 s so far" in capsys.readouterr().err
    pdc("down", "--data", str(data))
    monkeypatch.setattr("paddlecloud.platform.lifecycle.START_TIMEOUT", 0.001)
    assert main(["up", "--data", str(data), "--port", "0"]) == 1
    assert "it was not ready after" in capsys.readouterr().err
    assert endpoint.find(data) is None
    monkeypatch.undo()
    assert main(["up", "--data", str(data)]) == 0, "nobody holds the directory"


SPIN_ON_SIGNAL = """
import asyncio, signal

def spin_for_ever():
    while True:
        pass

def start(*_):
    asyncio.get_running_loop().call_soon_threadsafe(spin_for_ever)

signal.signal(signal.SIGUSR1, start)
"""
SLEEPER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "sleeper"},
    "spec": {"containers": [{"name": "main", "image": "busybox", "command": ["sh", "-c", "exec sleep 3600"]}]},
}


def start_with_a_pod(data: Path, env: dict[str, str]) -> tuple[int, int]:
    """The process ids of a platform and of the container of a pod that runs on it."""
    daemon = json.loads(pdc("up", "--data", str(data), "--port", "0", "-o", "json", env=env).stdout)["pid"]
    env = {**env, "KUBECONFIG": str(data / "kubeconfig")}
    pdc("apply", "-f", "-", env=env, input=json.dumps(SLEEPER))
    pdc("wait", "pod/sleeper", "--for=condition=Ready", "--timeout=60s", env=env)
    pod = json.loads(pdc("get", "pod", "sleeper", "-o", "json", env=env).stdout)
    uid = pod["metadata"]["uid"].encode()
    (program,) = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if _read(path) == b"sleep\0003600\0" and uid in _read(path.with_name("environ"))
    ]
    return daemon, program


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # of a process that has just ended


def is_there(pid: int) -> bool:
    """A process that has ended has no command line any more, even before its parent takes note."""
    return _read(Path(f"/proc/{pid}/cmdline")) != b""


def test_a_control_plane_that_answers_nobody_is_named_and_ended_and_its_pods_with_it(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SPIN_ON_SIGNAL)
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    daemon, program = start_with_a_pod(data, {**os.environ, "PYTHONPATH": path})
    os.kill(daemon, signal.SIGUSR1)
    until(lambda: "has held the event loop" in (data / "platform.log").read_text())
    assert "spin_for_ever" in (data / "platform.log").read_text()
    assert is_there(program)

    monkeypatch.setattr("paddlecloud.platform.lifecycle.STOP_TIMEOUT", 1.0)
    monkeypatch.setattr("paddlecloud.platform.lifecycle.REPORT_EVERY", 0.2)
    assert main(["down", "--data", str(data)]) == 0
    said = capsys.readouterr()
    assert f"stopped (data kept in {data})" in said.out
    assert "stopping the platform: 0 s so far\n" in said.err
    assert "did not stop within 1 s and is killed" in said.err
    assert "it was killed; 1 pod of it ran on and was ended" in said.err
    assert not is_there(daemon)
    assert not is_there(program)
    assert endpoint.find(data) is None
    assert main(["up", "--data", str(data)]) == 0, "nobody holds the directory"


def test_a_control_plane_whose_address_was_lost_is_found_and_ended(data: Path) -> None:
    daemon, program = start_with_a_pod(data, dict(os.environ))
    (data / "endpoint.json").unlink()
    assert f"stopped (data kept in {data})" in pdc("down", "--data", str(data)).stdout
    assert not is_there(daemon)
    assert not is_there(program)


def test_a_control_plane_that_was_suspended_stops_as_any_other(data: Path) -> None:
    daemon, program = start_with_a_pod(data, dict(os.environ))
    os.kill(daemon, signal.SIGSTOP)
    ended = pdc("down", "--data", str(data))
    assert "killed" not in ended.stderr
    assert not is_there(daemon)
    assert not is_there(program)


def test_a_kubeconfig_that_is_a_link_stays_one_and_keeps_what_others_wrote(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to(real)
    for context in ("theirs", kubeconfig.CONTEXT):
        kubeconfig.merge_into(link, kubeconfig.content(url="https://x", ca="", token="t", context=context))
    assert link.is_symlink()
    written = yaml.safe_load(real.read_text())
    assert [entry["name"] for entry in written["contexts"]] == ["theirs", kubeconfig.CONTEXT]
    assert written["current-context"] == kubeconfig.CONTEXT


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = pdc("up", "--data", str(tmp_path / "file" / "data"), check=False)
    assert refused.returncode == 2
    assert str(tmp_path / "file" / "data") in refused.stderr


def test_a_directory_that_others_may_write_to_is_closed_to_them(data: Path) -> None:
    data.mkdir()
    data.chmod(0o777)
    pdc("up", "--data", str(data), "--port", "0")
    assert data.stat().st_mode & 0o777 == 0o755


def test_a_directory_that_all_users_share_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    refused = pdc("up", "--data", str(tmp_path / "tmp"), check=False)
    assert refused.returncode != 0
    assert "is shared by all users of this machine; choose a directory of your own" in refused.stderr
    assert (tmp_path / "tmp").stat().st_mode & 0o7777 == 0o1777


def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    need("root", have=os.geteuid() == 0, hint="only root can give a directory away; run the tests as root")
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    refused = pdc("up", "--data", str(tmp_path / "theirs"), check=False)
    assert refused.returncode != 0
    assert "belongs to another user (uid 12345); choose a directory of your own" in refused.stderr


def test_a_link_that_waits_in_place_of_the_log_is_not_followed(data: Path, tmp_path: Path) -> None:
    data.mkdir()
    (data / "platform.log").symlink_to(tmp_path / "elsewhere")
    refused = pdc("up", "--data", str(data), check=False)
    assert refused.returncode != 0
    assert not (tmp_path / "elsewhere").exists()


def test_secrets_are_for_their_owner_alone(data: Path) -> None:
    pdc("up", "--data", str(data), "--port", "0")
    for path in [data / "kubeconfig", data / "state.db", data / "audit.log", *(data / "pki").iterdir()]:
        assert path.stat().st_mode & 0o077 == 0, f"{path} can be read by others"
    token = (data / "pki" / "admin.token").read_text().strip()
    pid = endpoint.find(data)
    assert pid is not None
    for name in ("cmdline", "environ"):
        assert token.encode() not in Path(f"/proc/{pid.pid}/{name}").read_bytes()
    for log in ("platform.log", "audit.log"):
        assert token not in (data / log).read_text()


def training(name: str, **spec: object) -> str:
    command = ["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.1; done"]
    container = {"name": "paddle", "image": "busybox", "command": command}
    worker = {"replicas": 2, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    body = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": name}}
    return json.dumps({**body, "spec": {"cleanPodPolicy": "Never", "worker": worker, **spec}})


def asked(answer: str, *args: str) -> tuple[int, str]:
    """pdc on a terminal, and what was said there; `answer` is typed when it asks."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "paddlecloud.cli.main", *args], stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said, answered = b"", False
    with contextlib.suppress(OSError), os.fdopen(ours, "r+b", buffering=0) as terminal:  # it ends with an error
        while part := terminal.read(4096):
            said += part
            if b"[y/N]" in said and not answered:  # a read may end within the question
                terminal.write(answer.encode() + b"\n")
                answered = True
    return process.wait(), said.decode()


def test_a_planned_stop_says_what_runs_and_costs_no_retry(data: Path) -> None:
    first = json.loads(pdc("up", "--data", str(data), "-o", "json").stdout)
    env = {**os.environ, "KUBECONFIG": first["kubeconfig"]}
    pdc("apply", "-f", "-", env=env, input=training("long", backoffLimit=0))

    def status() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(pdc("get", "pdj", "long", "-o", "json", env=env).stdout)
        return found.get("status") or {}

    def runs(generation: int) -> bool:
        found = status()
        return (found.get("phase"), found.get("generation")) == ("Running", generation)

    until(lambda: runs(0), timeout=90)
    code, said = asked("n", "down", "--data", str(data))
    assert (code, "pdj/long (Running)" in said, "Stop the platform?" in said) == (103, True, True), said
    assert runs(0), "it was not stopped"

    assert "pdj/long (Running)" in pdc("down", "--data", str(data)).stderr
    pdc("up", "--data", str(data))
    until(lambda: runs(1), timeout=90)

    os.kill(json.loads((data / "endpoint.json").read_text())["pid"], signal.SIGKILL)
    until(lambda: "crashed" in pdc("status", "--data", str(data), check=False).stdout)
    pdc("down", "--data", str(data))  # what runs on without its platform is stopped on purpose as well
    pdc("up", "--data", str(data))
    until(lambda: runs(2), timeout=90)

    for worker in range(2):
        pdc("exec", f"long-worker-{worker}", "--", "touch", "/tmp/go", env=env)
    pdc("wait", "pdj/long", "--for=finished", "--timeout=90s", env=env, timeout=120)
    found = status()
    assert (found["phase"], found.get("restarts"), found.get("disruptions")) == ("Completed", None, None)
    assert [record["failureClass"] for record in found["failures"]] == ["NodeShutdown", "NodeShutdown"]
    code, said = asked("n", "down", "--data", str(data))
    assert (code, "[y/N]" in said) == (0, False), "nothing runs, so nothing is asked"


def test_a_planned_stop_names_workflows_and_their_steps_run_again(data: Path) -> None:
    first = json.loads(pdc("up", "--data", str(data), "-o", "json").stdout)
    env = {**os.environ, "KUBECONFIG": first["kubeconfig"]}
    command = ["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.1; done"]
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "long"}}
    template = {"name": "step", "container": {"image": "busybox", "command": command}}
    spec = {"entrypoint": "step", "templates": [template]}
    pdc("apply", "-f", "-", env=env, input=json.dumps({**body, "spec": spec}))

    def phases() -> list[str]:
        found = json.loads(pdc("get", "wf", "long", "-o", "json", env=env).stdout).get("status") or {}
        return [node["phase"] for node in (found.get("nodes") or {}).values()]

    until(lambda: phases() == ["Running"], timeout=90)
    down = pdc("down", "--data", str(data), "-o", "json")
    assert "1 workflow has not ended and will go on after `pdc up`; a step whose program runs now" in down.stderr
    assert "wf/long (Running)" in down.stderr
    assert [each["name"] for each in json.loads(down.stdout)["workflows"]] == ["wf/long"]
    pdc("up", "--data", str(data))
    until(lambda: phases() == ["Running"], timeout=90)
    pdc("exec", "long", "--", "touch", "/tmp/go", env=env)
    pdc("wait", "wf/long", "--for=finished", "--timeout=90s", env=env, timeout=120)
    assert phases() == ["Succeeded"]
