"""Folders of `pdc suite init`: every task's is whole, its files fit one another, and both kfp compile it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import paddlecloud
from paddlecloud.serving import tasks as serving_tasks
from paddlecloud.suites import folder, samples
from paddlecloud.suites.tasks import TASKS
from tools import kfp

ALL = pytest.mark.parametrize("task", TASKS)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for task in TASKS:
        found[task] = tmp_path_factory.mktemp(task)
        folder.write(task, f"my-{task}", found[task], count=4)
    return found


@ALL
def test_a_folder_has_what_its_readme_names(task: str, made: dict[str, Path]) -> None:
    for page in ("README.md", "README.zh.md"):
        text = (made[task] / page).read_text()
        named = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
        assert all((made[task] / name).exists() for name in named)
        assert {*named} >= {"config.yml", "data/", "pipeline.py", "serving.yaml", "sweep.py", "volume.yaml"}
        assert all(one.name in text for one in TASKS[task].parameters)
        assert "[[" not in text + (made[task] / "pipeline.py").read_text()


@ALL
def test_files_that_commands_name_are_among_the_samples(task: str, made: dict[str, Path]) -> None:
    config = (made[task] / "config.yml").read_text()
    named = re.findall(r"/data/[\w./-]*\w", " ".join((TASKS[task].request, *TASKS[task].beside, config)))
    assert named
    assert [path for path in named if not (made[task] / path[1:]).exists()] == []


@ALL
def test_the_inference_server_knows_the_task_and_its_parameters(task: str, made: dict[str, Path]) -> None:
    for file in TASKS[task].beside:
        (made[task] / Path(file).name).write_bytes((made[task] / file[1:]).read_bytes())
    settings = yaml.safe_load((made[task] / "serving.yaml").read_text())
    loaded = serving_tasks.load(made[task], settings["processing"])
    assert TASKS[task].request.startswith(f"--input {loaded.inputs[0].name} ")


@ALL
def test_the_metric_is_one_number_of_what_the_suite_prints(task: str) -> None:
    printed = {
        "clas": "[Eval][Epoch 0][Avg]CELoss: 1.23663, loss: 1.23663, top1: 0.40625",
        "ocr-det": "[2026/11/19 21:34:44] ppocr INFO: hmean:0.40625",
        "ocr-rec": "[2026/11/19 21:34:44] ppocr INFO: acc:0.40625",
    }
    match = re.search(TASKS[task].pattern, printed[task])
    assert match is not None
    assert match.groups() == ("0.40625",)


COMPILE = """
import sys
from kfp import compiler
import pipeline, sweep
compiler.Compiler().compile(pipeline.pipeline, "pipeline.out.yaml")
compiler.Compiler().compile(sweep.sweep, "sweep.out.yaml")
"""


@pytest.mark.parametrize("generation", [1, 2], ids=["kfp-1.8", "kfp-2"])
@ALL
@pytest.mark.timeout(kfp.BUILD_SECONDS)
def test_both_kfp_compile_its_pipelines(task: str, generation: int, made: dict[str, Path]) -> None:
    source = str(Path(paddlecloud.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((source, str(made[task]))), "PYTHONWARNINGS": "ignore"}
    command = [str(kfp.python(generation)), "-c", COMPILE]
    done = subprocess.run(command, capture_output=True, text=True, cwd=made[task], env=env, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    for name, steps in (("pipeline", 7), ("sweep", 2 + 2 * len(TASKS[task].trials))):
        compiled: dict[str, Any] = next(yaml.safe_load_all((made[task] / f"{name}.out.yaml").read_text()))
        if generation == 1:
            found = [one for one in compiled["spec"]["templates"] if "container" in one]
        else:
            found = list(compiled["root"]["dag"]["tasks"])
        assert len(found) == steps


def test_every_format_of_a_task_can_be_generated() -> None:
    assert {task.samples for task in TASKS.values()} <= set(samples.FORMATS)
