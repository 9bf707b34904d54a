"""What the embedded platform makes of this machine's GPUs, from the driver to the program in the pod.

    PYTHONPATH=src python tests/tools/gpu.py

Needs the package and its dependencies, a driver, and nothing else: no pytest, no image, no internet. It starts a
platform of its own, and prints what it saw line by line. It ends with 1 at the first thing that is not so, with 77
where the machine has no GPU.

    the node        tells of as many nvidia.com/gpu as NVML counts
    a pod for each  gets exactly one, each another one; CUDA itself, asked in the pod, sees that one alone
    one pod more    waits, with the reason; it gets the device of the first that ends
    a pod without   sees none
    a model         is computed on the GPU of its pod, if this Python's onnxruntime can; else that part is left out
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import NODES, PODS
from paddlecloud.kube.stdlib import StdlibTransport, drive
from paddlecloud.local.kubelet.node.devices import RESOURCE, find_gpus

LIMIT = 60.0
NO_GPU = 77

PROGRAM = """
import ctypes, json, os, sys, time

seen = {name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES")}
cuda = None
for folder in ("", "/usr/local/nvidia/lib64/", "/usr/lib/wsl/lib/"):  # where the linker may not look
    try:
        cuda = ctypes.CDLL(folder + "libcuda.so.1")
        break
    except OSError as error:
        seen.setdefault("cuda", str(error))
if cuda is not None:
    seen["init"] = cuda.cuInit(0)
    if seen["init"] == 0:
        count, bus = ctypes.c_int(), ctypes.create_string_buffer(32)
        cuda.cuDeviceGetCount(ctypes.byref(count))
        seen["devices"] = []
        for number in range(count.value):
            device = ctypes.c_int()
            cuda.cuDeviceGet(ctypes.byref(device), number)
            cuda.cuDeviceGetPCIBusId(bus, 32, device)
            seen["devices"].append(bus.value.decode())
print(json.dumps(seen), flush=True)
if sys.argv[1] == "stay":
    time.sleep(600)
"""

SERVE = """
import json, sys, tempfile, time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from paddlecloud.serving import model_folder, runners

size, rows = 4096, 512
weights = np.random.default_rng(0).standard_normal((size, size)).astype("float32")
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"])],
    "product",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", size])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", size])],
    [numpy_helper.from_array(weights, "w")],
)
folder = Path(tempfile.mkdtemp())
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
onnx.save(model, str(folder / "model.onnx"))
runner = runners.load(model_folder.find(folder), threads=1)
x = np.random.default_rng(1).standard_normal((rows, size)).astype("float32")
runner.run({"x": x})
began = time.perf_counter()
y = runner.run({"x": x})["y"]
took = time.perf_counter() - began
off = float(np.abs(y - x @ weights).max() / np.abs(y).max())
print(json.dumps({"device": runner.device, "idle": runners.idle_gpu(runner), "off": off, "ms": took * 1e3}), flush=True)
"""


class Platform:
    def __init__(self, data: Path) -> None:
        self.data = data
        self.client: Client

    def pdc(self, *args: str) -> str:
        command = [sys.executable, "-m", "paddlecloud.cli.main", *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise SystemExit(f"pdc {' '.join(args)}: {done.stdout}{done.stderr}")
        return done.stdout

    def up(self) -> None:
        self.pdc("up", "--data", str(self.data), "--port", "0", "--kubeconfig", str(self.data / "own"))
        self.client = Client(StdlibTransport(config.load(kubeconfig=str(self.data / "kubeconfig"))))

    def run(self, name: str, gpus: int, *, program: str = PROGRAM, stay: bool = True) -> None:
        """The program in a pod, with the Python and the packages of this process."""
        packages = [{"name": name, "value": os.environ.get(name, "")} for name in ("PYTHONPATH", "LD_LIBRARY_PATH")]
        container: dict[str, Any] = {
            "name": "main",
            "image": "alpine",
            "env": packages,
            "command": [sys.executable, "-c", program, "stay" if stay else "end"],
        }
        if gpus:
            container["resources"] = {"limits": {RESOURCE: gpus}}
        mounts, volumes = _own_folders()
        container["volumeMounts"] = mounts
        spec = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": volumes,
        }
        drive(self.client.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace="default"))

    def status(self, name: str) -> Any:
        return drive(self.client.get(PODS, name, "default")).get("status") or {}

    def log(self, name: str) -> str:
        return drive(self.client.raw("GET", PODS.path("default", name, "log"))).body.decode().strip()

    def seen(self, name: str) -> Any:
        """What the program in the pod found."""
        until(lambda: self.status(name).get("phase") in ("Running", "Succeeded"), f"{name} runs")
        return json.loads(until(lambda: self.log(name), f"{name} tells what it sees"))

    def refusal(self, name: str) -> str:
        conditions = self.status(name).get("conditions") or ()
        return next((str(c.get("message")) for c in conditions if c.get("reason") == "Unschedulable"), "")


def _own_folders() -> tuple[list[Any], list[Any]]:
    """This Python and this checkout, mounted where they are: a pod's own /tmp hides them if they lie in /tmp."""
    folders = {"python": sys.prefix, "checkout": str(Path(__file__).resolve().parents[2])}
    mounts = [{"name": name, "mountPath": path, "readOnly": True} for name, path in folders.items()]
    volumes = [{"name": name, "hostPath": {"path": path}} for name, path in folders.items()]
    return mounts, volumes


def until(check: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + LIMIT
    while not (found := check()):
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {LIMIT:.0f} s: {what}")
        time.sleep(0.2)
    return found


def expect(what: str, *, seen: Any, expected: Any) -> None:
    print(f"{'ok' if seen == expected else 'NO'}  {what}: {seen}", flush=True)
    if seen != expected:
        raise SystemExit(f"expected {expected}")


def prove(platform: Platform, gpus: tuple[str, ...]) -> None:
    node = drive(platform.client.list(NODES)).items[0]["status"]
    for field in ("capacity", "allocatable"):
        expect(f"{field} of the node", seen=node[field].get(RESOURCE), expected=str(len(gpus)))
    names = [f"gpu-{number}" for number in range(len(gpus))]
    for name in names:
        platform.run(name, 1)
    found = {name: platform.seen(name) for name in names}
    held = {name: seen["CUDA_VISIBLE_DEVICES"] for name, seen in found.items()}
    print(f"    {json.dumps(found)}")
    expect("each pod has one of its own", seen=sorted(held.values()), expected=sorted(gpus))
    if all(seen.get("init") == 0 for seen in found.values()):
        expect("CUDA sees one in each pod", seen={len(s["devices"]) for s in found.values()}, expected={1})
        buses = {seen["devices"][0] for seen in found.values()}
        expect("and in each another", seen=len(buses), expected=len(gpus))
    platform.run("late", 1)
    until(lambda: platform.refusal("late"), "the pod that is too many has the reason why it waits")
    expect("one more waits", seen=f"Insufficient {RESOURCE}" in platform.refusal("late"), expected=True)
    print(f"    {platform.refusal('late')}")
    reported = platform.pdc("explain", "pod/late", "--kubeconfig", str(platform.data / "kubeconfig"))
    print("    " + reported.replace("\n", "\n    ").strip())
    platform.run("without", 0, stay=False)
    without = platform.seen("without")
    expect("a pod that asked for none sees none", seen=without["CUDA_VISIBLE_DEVICES"], expected="")
    if "init" in without:
        expect("nor does CUDA there", seen=without.get("devices", []), expected=[])
    drive(platform.client.delete(PODS, names[0], namespace="default"))
    expect(
        "the pod that waited gets the device that was given back",
        seen=platform.seen("late")["CUDA_VISIBLE_DEVICES"],
        expected=held[names[0]],
    )


def prove_serving(platform: Platform) -> None:
    """The pods before have ended or are ended here, so that the devices are free."""
    if "CUDAExecutionProvider" not in _providers():
        print("    onnxruntime here computes on the CPU alone: no model is asked")
        return
    platform.run("without-model", 0, program=SERVE)
    drive(platform.client.delete(PODS, "late", namespace="default"))
    platform.run("model", 1, program=SERVE)
    for name, device in (("without-model", "cpu"), ("model", "gpu")):
        reported = platform.seen(name)
        print(f"    {json.dumps(reported)}")
        expect(f"the model of pod {name} is computed on the", seen=reported["device"], expected=device)
        expect("and its answers are right", seen=reported["off"] < 1e-3, expected=True)


def _providers() -> list[str]:
    try:
        import onnxruntime
    except ImportError:
        return []
    return list(onnxruntime.get_available_providers())


def main() -> int:
    gpus = find_gpus()
    if not gpus:
        print("NVML finds no GPU on this machine")
        return NO_GPU
    print(f"NVML counts {len(gpus)}, Python {sys.version.split()[0]}, {os.uname().release}, uid {os.geteuid()}")
    with tempfile.TemporaryDirectory() as folder:
        platform = Platform(Path(folder) / "data")
        platform.up()
        try:
            prove(platform, gpus)
            prove_serving(platform)
        finally:
            platform.pdc("down", "--data", str(platform.data))
    print("all of it is so")
    return 0


if __name__ == "__main__":
    sys.exit(main())
