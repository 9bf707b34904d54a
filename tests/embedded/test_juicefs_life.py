"""A SampleSet kept in JuiceFS while its platform is stopped, started and killed: the data stays, mounts do not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import need, pdc, until
from paddlecloud.kube.resource import Object
from tools import original

pytestmark = pytest.mark.timeout(300)  # the image of the cache server is built on first use


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    can = os.geteuid() == 0 and os.path.exists("/dev/fuse")
    need("fuse", have=can, hint="mounting JuiceFS takes root and /dev/fuse")
    yield tmp_path / "data"
    pdc("down", "--data", str(tmp_path / "data"))


@pytest.fixture
def source() -> Iterator[Path]:
    """A folder with a file; not in /tmp, where pods have their own, and not hidden, which sets may not read."""
    folder = Path.home() / f"pdc-test-{os.getpid()}"
    folder.mkdir()
    (folder / "a.txt").write_text("a" * 5000)
    yield folder
    (folder / "a.txt").unlink()
    folder.rmdir()


def uid(kind: str, name: str, env: dict[str, str]) -> str:
    return str(json.loads(pdc("get", kind, name, "-o", "json", env=env).stdout)["metadata"]["uid"])


def up(data: Path, *more: str) -> int:
    """Start the platform; its process id."""
    answer = pdc("up", "--data", str(data), "--port", "0", "--kubeconfig", str(data.parent / "kc"), "-o", "json", *more)
    return int(json.loads(answer.stdout)["pid"])


def mounts(data: Path) -> list[str]:
    return [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if f"{data}/juicefs" in line]


def programs(data: Path) -> list[str]:
    """Processes whose command names the platform's folder: daemon, JuiceFS, pods."""
    shown = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in shown.splitlines() if str(data) in line]


@pytest.mark.soak
def test_a_set_of_the_original_operator_goes_on_with_its_data(data: Path, kubectl_binary: str) -> None:
    """What it left is there before our controllers are; a pod of its has written to the set, another reads it."""
    env = {**os.environ, "KUBECONFIG": str(data / "kubeconfig")}
    up(data, "--no-controllers")
    mark = {"name": "old", "finalizers": ["paddlepaddle.org/sampleset-old"]}
    spec = {"secretRef": {"name": "data-center"}, "source": {"uri": "file:///etc/default"}}
    sample_set = {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": "SampleSet", "metadata": mark, "spec": spec}
    script = "echo kept > /mnt/old/file; exec sleep 600"
    left = original.objects(
        "old",
        "default",
        secret="data-center",
        cache_dir=f"/dev/shm/pdc-test-{os.getpid()}",
        image="busybox",
        command=["sh", "-c", script],
        propagation="HostToContainer",
    )
    everything = {"apiVersion": "v1", "kind": "List", "items": [*left, sample_set]}
    pdc("apply", "-f", "-", env=env, input=json.dumps(everything))
    status = json.dumps({"status": original.status()})
    patch = ("patch", "sampleset", "old", "--subresource=status", "--type=merge", "-p", status)
    subprocess.run([kubectl_binary, *patch], env=env, check=True, capture_output=True, timeout=60)
    pdc("wait", "pod/old-runtime-0", "--for=condition=Ready", "--timeout=60s", env=env, timeout=70)
    before = {kind: uid(kind, "old", env) for kind in ("pv", "pvc")}
    pdc("down", "--data", str(data))

    up(data)
    servers = ("get", "pods", "-l", "paddlepaddle.org/sampleset=old", "-o", "name")
    until(lambda: "old-runtime-0" in pdc(*servers, env=env).stdout, timeout=100)
    pdc("wait", "sampleset/old", "--for=condition=Ready", "--timeout=100s", env=env, timeout=110)
    assert {kind: uid(kind, "old", env) for kind in before} == before
    (seen,) = [Path(place) for place in mounts(data) if place.endswith("/mount")]
    assert (seen / "file").read_text() == "kept\n"
    pdc("samplejob", "warmup", "old", env=env)
    pdc("delete", "sampleset", "old", "-y", env=env, timeout=100)


def test_juicefs_keeps_the_data_where_the_machine_can_mount_it(data: Path, source: Path) -> None:
    """The engine `juicefs` with the Secret `data-center` that every platform has."""
    env = {**os.environ, "KUBECONFIG": str(data / "kubeconfig")}

    def ready() -> Object:
        pdc("wait", "sampleset/deep", "--for=condition=Ready", "--timeout=150s", env=env, timeout=160)
        found: Object = json.loads(pdc("get", "sampleset", "deep", "-o", "json", env=env).stdout)
        return dict(found["status"])

    def runs_again() -> bool:
        """The cache server after a start: what was reported before the start says nothing."""
        found = json.loads(pdc("get", "pod", "deep-runtime-0", "-o", "json", env=env).stdout)
        (state,) = found["status"]["containerStatuses"]
        return bool(state["ready"] and state["restartCount"])

    up(data)
    kind = {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": "SampleSet", "metadata": {"name": "deep"}}
    spec = {
        "csi": {"driver": "juicefs"},
        "secretRef": {"name": "data-center"},
        "source": {"uri": f"file://{source}"},
    }
    pdc("apply", "-f", "-", env=env, input=json.dumps({**kind, "spec": spec}))
    found = ready()
    assert found["driver"] == "juicefs"
    assert found["cacheStatus"]["totalFiles"] == "1"
    pdc("samplejob", "warmup", "deep", env=env)
    (seen,) = [Path(place) for place in mounts(data) if place.endswith("/mount")]
    assert (seen / "a.txt").read_text() == "a" * 5000

    pdc("down", "--data", str(data))
    assert mounts(data) == [], "deleting the folder now would delete what lies behind it"
    until(lambda: programs(data) == [])

    pid = up(data)
    until(runs_again)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{pid}").exists())
    assert (seen / "a.txt").read_text() == "a" * 5000, "pods go on while the control plane is away"
    ended = pdc("down", "--data", str(data))
    assert "it had crashed; 1 pod of it ran on and was ended" in ended.stderr
    assert mounts(data) == []
    until(lambda: programs(data) == [])

    up(data)
    pdc("delete", "sampleset", "deep", "-y", env=env, timeout=100)
    until(lambda: mounts(data) == [])
