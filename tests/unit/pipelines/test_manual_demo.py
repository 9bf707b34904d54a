"""The manual's demo, code unchanged, compiles under the kfp that it was written for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import kfp

DEMO = Path(__file__).parents[3] / "examples" / "manual" / "pipeline-demo.py"
COMPILE = """
import runpy, sys
from kfp import compiler
names = runpy.run_path(sys.argv[1])
compiler.Compiler().compile(names["ppocr_detection_demo"], sys.argv[2])
"""


def compiled(folder: Path) -> dict[str, Any]:
    """The workflow of the demo, compiled beside the component files as the manual says."""
    subprocess.run([sys.executable, "-m", "paddlecloud.pipelines", str(folder)], check=True, capture_output=True)
    target = folder / "ppocr_detection_demo.yaml"
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    command = [str(kfp.python(1)), "-c", COMPILE, str(DEMO), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = yaml.safe_load(target.read_text())
    return found


@pytest.mark.timeout(kfp.BUILD_SECONDS)
def test_the_manuals_demo_compiles_to_a_workflow_of_its_five_steps(tmp_path: Path) -> None:
    workflow = compiled(tmp_path)
    assert (workflow["apiVersion"], workflow["kind"]) == ("argoproj.io/v1alpha1", "Workflow")
    (dag,) = [one["dag"] for one in workflow["spec"]["templates"] if "dag" in one]
    order = {task["name"]: sorted(task.get("dependencies") or ()) for task in dag["tasks"]}
    assert order == {
        "ppocr-detection-pvc": [],
        "dataset": [],
        "training": ["dataset", "ppocr-detection-pvc"],
        "modelhub": ["ppocr-detection-pvc", "training"],
        "serving": ["modelhub"],
    }
