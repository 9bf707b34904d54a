"""Which container has which GPU."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.local.kubelet.devices import Devices
from paddlecloud.local.kubelet.env import ConfigError


def container(count: int, name: str = "main") -> dict[str, Any]:
    return {"name": name, "resources": {"limits": {"nvidia.com/gpu": count}} if count else {}}


def test_gpus_are_given_once_kept_over_restarts_and_given_back() -> None:
    devices = Devices(["a", "b", "c"])
    first = devices.allocate("pod-1", container(2))
    assert first == ("a", "b")
    assert devices.allocate("pod-1", container(2)) == first
    assert devices.allocate("pod-2", container(1)) == ("c",)
    with pytest.raises(ConfigError, match="1 GPUs wanted, 0 of 3 free"):
        devices.allocate("pod-3", container(1))
    devices.release("pod-1")
    assert devices.allocate("pod-3", container(1)) == ("a",)


def test_what_pods_of_an_earlier_kubelet_hold_is_not_given_again() -> None:
    devices = Devices(["a", "b"], taken={"old": {"main": ["a"]}})
    assert devices.allocate("new", container(1)) == ("b",)
    assert devices.allocate("old", container(1)) == ("a",)


def test_a_container_without_a_request_sees_none_and_a_machine_without_gpus_says_nothing() -> None:
    devices = Devices(["a"])
    assert devices.env(devices.allocate("pod", container(0))) == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "",
        "NVIDIA_VISIBLE_DEVICES": "void",
    }
    assert Devices([]).env(()) == {}
    assert Devices([]).allocate("pod", container(2)) == (), "declared by a virtual node: the pod runs on the CPU"
    assert Devices([]).capacity == {}
