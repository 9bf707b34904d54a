"""Which container has which GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import need
from paddlecloud.local.kubelet.node.devices import Devices
from paddlecloud.local.kubelet.pod.errors import ContainerConfigError

NODE = "machine"


def container(count: int, name: str = "main") -> dict[str, Any]:
    return {"name": name, "resources": {"limits": {"nvidia.com/gpu": count}} if count else {}}


def test_gpus_are_given_once_kept_over_restarts_and_given_back() -> None:
    devices = Devices(["a", "b", "c"])
    first = devices.allocate("pod-1", container(2), node=NODE)
    assert first == ("a", "b")
    assert devices.allocate("pod-1", container(2), node=NODE) == first
    assert devices.allocate("pod-2", container(1), node=NODE) == ("c",)
    with pytest.raises(ContainerConfigError, match="1 GPUs wanted, 0 of 3 free"):
        devices.allocate("pod-3", container(1), node=NODE)
    devices.release("pod-1")
    assert devices.allocate("pod-3", container(1), node=NODE) == ("a",)


def test_what_pods_of_an_earlier_kubelet_hold_is_not_given_again() -> None:
    devices = Devices(["a", "b"], taken={"old": {"main": ["a"]}})
    assert devices.allocate("new", container(1), node=NODE) == ("b",)
    assert devices.allocate("old", container(1), node=NODE) == ("a",)


def test_a_container_without_a_request_sees_none_and_a_machine_without_gpus_says_nothing() -> None:
    devices = Devices(["a"])
    assert devices.env(devices.allocate("pod", container(0), node=NODE)) == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "",
        "NVIDIA_VISIBLE_DEVICES": "void",
    }
    assert Devices([]).env(()) == {}
    assert Devices([]).allocate("pod", container(2), node=NODE) == (), "only declared: the pod runs on the CPU"
    assert Devices([]).capacity == {}


def test_a_node_that_only_declares_gpus_takes_none_of_the_machines() -> None:
    devices = Devices(["a"])
    devices.only_declared_by("virtual")
    for pod in ("one", "two", "three"):
        held = devices.allocate(pod, container(4), node="virtual")
        assert devices.env(held)["CUDA_VISIBLE_DEVICES"] == "", "it runs on the CPU"
    assert devices.allocate("real", container(1), node=NODE) == ("a",)


NVML = """
int nvmlInit_v2(void) { return %(init)d; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 3; return %(count)d; }
"""


@pytest.mark.parametrize(
    ("init", "count", "found"),
    [(0, 0, "('0', '1', '2')"), (9, 0, "()"), (0, 15, "()")],
    ids=["a driver with three", "a library without a driver", "a driver that has lost its devices"],
)
def test_gpus_are_found_through_the_drivers_library(tmp_path: Path, init: int, count: int, found: str) -> None:
    need("cc", have=shutil.which("cc") is not None, hint="a C compiler, to make a driver's library of three functions")
    (tmp_path / "nvml.c").write_text(NVML % {"init": init, "count": count})
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "libnvidia-ml.so.1", "nvml.c"], cwd=tmp_path, check=True)
    code = "from paddlecloud.local.kubelet.node.devices import find_gpus; print(find_gpus())"
    env = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    assert subprocess.check_output([sys.executable, "-c", code], env=env, text=True).strip() == found
