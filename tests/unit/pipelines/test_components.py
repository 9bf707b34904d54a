"""The component files: what is checked in is what the declarations say, and both real kfp load and compile it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from component_files import files

import paddlecloud
from paddlecloud.pipelines.components.catalogue import COMPONENTS, path
from paddlecloud.pipelines.components.declaration import Component
from tools import kfp

ROOT = Path(__file__).parents[3]
SOURCE = Path(paddlecloud.__file__).parents[1]
GENERATIONS = pytest.mark.parametrize("generation", [1, 2], ids=["kfp-1.8", "kfp-2"])
ids = [f"{one.set}-{one.file}" for one in COMPONENTS]


def run(generation: int, script: str, folder: Path, *arguments: str) -> str:
    """What a script prints under that kfp, with this project importable beside it."""
    file = folder / "script.py"
    file.write_text(script)
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONWARNINGS": "ignore"}
    command = [str(kfp.python(generation)), str(file), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_every_generated_file_is_as_the_declarations_say() -> None:
    stale = [str(target) for target, content in files(ROOT).items() if target.read_text(encoding="utf-8") != content]
    assert not stale, "run make rendered"


def test_the_files_have_the_names_of_the_originals() -> None:
    assert [f"{one.set}/{one.file}.yaml" for one in COMPONENTS if one.set != "suite"] == [
        "operator/dataset.yaml", "operator/training.yaml", "operator/modelhub.yaml", "operator/serving.yaml",
        "launcher/sampleset.yaml", "launcher/samplejob.yaml", "launcher/paddlejob.yaml", "launcher/serving.yaml",
        "launcher/visualdl.yaml", "launcher/configure.yaml", "launcher/converter.yaml", "launcher/uploader.yaml",
    ]  # fmt: skip


@pytest.mark.parametrize("component", COMPONENTS, ids=ids)
def test_every_input_has_a_type(component: Component) -> None:
    """kfp 2 reads an input without one as an artifact, which no text can be passed for."""
    written = yaml.safe_load(path(component).read_text(encoding="utf-8"))
    assert all(one.get("type") for one in written["inputs"])


LOAD = """
import json, sys
from kfp import components
found = {}
for file in sys.argv[1:]:
    inputs = components.load_component_from_file(file).component_spec.inputs
    names = inputs if isinstance(inputs, dict) else [one.name for one in inputs]
    found[file] = [str(name) for name in names]
print(json.dumps(found))
"""


@GENERATIONS
@pytest.mark.timeout(kfp.BUILD_SECONDS)
def test_kfp_loads_all(generation: int, tmp_path: Path) -> None:
    found = json.loads(run(generation, LOAD, tmp_path, *(str(path(one)) for one in COMPONENTS)).splitlines()[-1])
    for one in COMPONENTS:
        wanted = [given.name if generation == 1 else given.parameter for given in one.inputs]
        assert found[str(path(one))] == wanted


FUNCTIONS = """
import sys, kfp
from kfp import dsl, compiler
from paddlecloud.pipelines import dataset, training, modelhub, serving, visualdl

@dsl.pipeline(name="typed")
def typed(claim: str = "task"):
    data = dataset(name="icdar2015", source_uri="bos://bucket/icdar2015/", source_secret="none")
    first = kfp.__version__ < "2"
    trained = training(
        name="det", project="PaddleOCR", image="ocr:1", config_path="c.yml", pvc_name=claim, worker_replicas=1,
        dataset=data.outputs["dataset"], use_visualdl=True, config_changes="Global.epoch_num=2",
    )
    stored = modelhub(name="det", model_name="det", pvc_name=claim).after(trained)
    served = serving(name="det", image="host:5000/serving:v1", model_name="det", port=9393).after(stored)
    visualdl(name="curves", pvc_name=claim, mount_path="/mnt", logdir="/mnt/vdl").after(served)

compiler.Compiler().compile(typed, "typed.yaml")
"""


@GENERATIONS
@pytest.mark.timeout(kfp.BUILD_SECONDS)
def test_the_functions_are_tasks_of_the_installed_kfp(generation: int, tmp_path: Path) -> None:
    run(generation, FUNCTIONS, tmp_path)
    compiled: dict[str, Any] = next(yaml.safe_load_all((tmp_path / "typed.yaml").read_text()))
    if generation == 1:
        images = [one["container"]["image"] for one in compiled["spec"]["templates"] if "container" in one]
        assert (compiled["kind"], len(images)) == ("Workflow", 5)
    else:
        executors = compiled["deploymentSpec"]["executors"]
        images = [one["container"]["image"] for one in executors.values()]
        assert len(images) == 5
        given = compiled["root"]["dag"]["tasks"]["training"]["inputs"]["parameters"]
        assert given["use_visualdl"] == {"runtimeValue": {"constant": True}}
    assert set(images) == {f"paddlecloud/pipeline:{paddlecloud.__version__}"}


def test_without_kfp_the_functions_name_the_package() -> None:
    from paddlecloud.pipelines import dataset

    with pytest.raises(ImportError, match="pip install kfp"):
        dataset(name="a", source_uri="b", source_secret="none")


def test_the_files_are_written_where_the_manuals_programs_look(tmp_path: Path) -> None:
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "paddlecloud.pipelines", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    names = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.yaml"))
    assert len(names) == 15
    assert {"yaml/dataset.yaml", "components/visualdl.yaml", "runner.yaml"} < set(names)
