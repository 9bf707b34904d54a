"""GPUs from the driver to the program in the pod: on a driver's library of three functions, and on the real one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import need
from paddlecloud.local.kubelet.node.devices import find_gpus

SCRIPT = Path(__file__).parents[1] / "tools" / "gpu.py"
DRIVER = """
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 2; return 0; }
"""


def prove(**environ: str) -> str:
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], env={**os.environ, **environ}, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(300)
def test_each_pod_has_gpus_of_its_own_or_waits_for_them(tmp_path: Path) -> None:
    need("cc", have=shutil.which("cc") is not None, hint="a C compiler, to make a driver's library of three functions")
    (tmp_path / "nvml.c").write_text(DRIVER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "libnvidia-ml.so.1", "nvml.c"], cwd=tmp_path, check=True)
    said = prove(LD_LIBRARY_PATH=str(tmp_path))
    assert "ok  capacity of the node: 2" in said
    assert "ok  the pod that waited gets the device that was given back: 0" in said


@pytest.mark.gpu
def test_the_machines_own_gpus_are_given_out_and_cuda_agrees() -> None:
    need("gpu", have=bool(find_gpus()), hint="a machine with NVIDIA's driver")
    assert "CUDA sees one in each pod" in prove()
