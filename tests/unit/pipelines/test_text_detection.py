"""The manual's flow written for kfp 2: it compiles, and becomes a workflow of one pod for each step."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import paddlecloud
from paddlecloud.pipelines.ir import translate
from tools import kfp

EXAMPLE = Path(__file__).parents[3] / "examples" / "pipelines" / "text_detection.py"


@pytest.mark.timeout(kfp.BUILD_SECONDS)
def test_the_example_for_kfp_2_becomes_a_workflow(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(paddlecloud.__file__).parents[1]), "PYTHONWARNINGS": "ignore"}
    command = [str(kfp.python(2)), str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    workflow = translate((tmp_path / "text_detection.yaml").read_bytes(), {"epochs": 2, "gpus": 0}, "text-detection")
    names = {template["name"] for template in workflow["spec"]["templates"]}
    assert {"createpvc", "dataset", "training", "modelhub", "serving"} < names
