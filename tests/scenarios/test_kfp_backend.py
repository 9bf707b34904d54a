"""The real backend of Kubeflow Pipelines: files of both kfp compilers and our components run there, and a file of kfp 2
gives there what it gives when we translate it.

Its programs take minutes to build (`python -m cluster.harness build kfp`) and to run, so this runs on the embedded
platform only when `PDC_REQUIRE=kfp-backend` asks for it; on a cluster it is the part `kfp` of the full tier.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness import Target, until
from paddlecloud.pipelines import ir
from paddlecloud.pipelines.components.image import IMAGE
from tools.kfp_backend import ACCOUNT, NAMESPACE

from . import kfp_backends
from .kfp_backends import Backend, Run

GOLDEN = Path(__file__).parents[1] / "unit/pipelines/ir/golden"
pytestmark = [pytest.mark.full, pytest.mark.timeout(900), pytest.mark.usefixtures("operators")]
OVER = ("Succeeded", "Failed", "Error")

TWO_STEPS = {
    1: """
def echo(name, text):
    says = ["sh", "-c", 'echo "$0" > /tmp/said']
    return dsl.ContainerOp(
        name=name, image="busybox:1.36", command=says, arguments=[text], file_outputs={"said": "/tmp/said"})
@dsl.pipeline(name="two-steps", description="says something twice")
def pipe(msg: str = "hello"):
    echo("second", echo("first", msg).outputs["said"])
compiler.Compiler().compile(pipe, "two.yaml")
made = kept(lambda: client.create_run_from_pipeline_package(
    "two.yaml", arguments={"msg": "hi"}, run_name="r1", experiment_name="exp one"))
run = client.wait_for_run_completion(made.run_id, 300).run
uploaded = client.upload_pipeline("two.yaml", "two steps of kfp 1")
experiment = client.get_experiment(experiment_name="exp one")
again = kept(lambda: client.run_pipeline(experiment.id, "by id", pipeline_id=uploaded.id, params={"msg": "again"}))
show([run.status, client.wait_for_run_completion(again.id, 300).run.status])
""",
    2: """
@dsl.container_component
def echo(text: str, said: dsl.OutputPath(str)):
    return dsl.ContainerSpec(
        image="busybox:1.36", args=[text, said], command=["sh", "-c", 'mkdir -p "$(dirname "$1")"; echo "$0" > "$1"'])
@dsl.pipeline(name="two-steps", description="says something twice")
def pipe(msg: str = "hello"):
    echo(text=echo(text=msg).outputs["said"])
compiler.Compiler().compile(pipe, "two.yaml")
made = kept(lambda: client.create_run_from_pipeline_package(
    "two.yaml", arguments={"msg": "hi"}, run_name="r2", experiment_name="exp two"))
run = client.wait_for_run_completion(made.run_id, timeout=300)
uploaded = client.upload_pipeline("two.yaml", "two steps of kfp 2")
experiment = client.get_experiment(experiment_name="exp two")
version = client.list_pipeline_versions(uploaded.pipeline_id).pipeline_versions[0].pipeline_version_id
again = kept(lambda: client.run_pipeline(
    experiment.experiment_id, "by id", pipeline_id=uploaded.pipeline_id, version_id=version, params={"msg": "again"}))
show([run.state.capitalize(), client.wait_for_run_completion(again.run_id, timeout=300).state.capitalize()])
""",
}
COMPONENTS = """
load = lambda file: components.load_component_from_file(file + ".yaml")
gone = dict(namespace=given["namespace"], action="delete")
@dsl.pipeline(name="components")
def pipe():
    load("components/sampleset")(name="absent", **gone)
    load("components/samplejob")(name="absent", type="sync", sampleset_ref={"name": "absent"}, **gone)
    load("components/serving")(name="absent", default={}, **gone)
    load("components/visualdl")(name="absent", pvc_name="x", mount_path="/mnt", logdir="/mnt/log", **gone)
    load("yaml/dataset")(name="absent", source_uri="bos://a/b", source_secret="none", **gone)
    load("yaml/training")(
        name="absent", project="PaddleOCR", image="ocr:1", config_path="c.yml", dataset="absent", pvc_name="x",
        worker_replicas=1, **gone)
    load("yaml/modelhub")(name="absent", model_name="absent", pvc_name="x", **gone)
    load("yaml/serving")(name="absent", image="serving:1", model_name="absent", **gone)
    load("components/configure")(path="/tmp/settings", filename="one.txt", content="text of a file")
    load("components/uploader")(
        endpoint="file:///tmp/store", model_file="/etc/passwd", model_name="det", version="v1")
    load("components/paddlejob")(
        name=given["job"], namespace=given["namespace"], action="apply", worker_spec=given["worker"])
compiler.Compiler().compile(pipe, "components.yaml")
made = kept(lambda: client.create_run_from_pipeline_package("components.yaml", arguments={}, run_name=given["job"]))
"""
"""All but the converter, whose image has Paddle."""
WAIT = {
    1: "show([made.run_id, client.wait_for_run_completion(made.run_id, 500).run.status])",
    2: "show([made.run_id, client.wait_for_run_completion(made.run_id, timeout=500).state.capitalize()])",
}
SUBMIT = """
made = kept(lambda: client.create_run_from_pipeline_package(
    given["file"], arguments=given["arguments"], run_name=given["name"], enable_caching=False))
"""


@pytest.fixture(scope="session")
def shell(server: Target, kubectl_binary: str, kubectl_cache: Path) -> Run:
    """kubectl in the namespace of the backend."""
    env = {**server.env, "KUBECACHEDIR": str(kubectl_cache)}

    def run(*args: str, input: str | None = None) -> str:
        command = [kubectl_binary, "--namespace", NAMESPACE, *args]
        done = subprocess.run(command, env=env, input=input, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def backend(
    server: Target, shell: Run, kubectl_binary: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Backend]:
    with kfp_backends.backend(server, shell, kubectl_binary, tmp_path_factory.mktemp("backend")) as found:
        yield found


@pytest.mark.parametrize("generation", [1, 2])
def test_a_compiled_file_runs_and_is_uploaded_and_runs_by_its_id(
    backend: Backend, tmp_path: Path, generation: int
) -> None:
    assert backend.run(generation, TWO_STEPS[generation], tmp_path) == ["Succeeded", "Succeeded"]


@pytest.mark.parametrize("generation", [1, 2])
def test_our_components_do_there_what_they_do_here(
    backend: Backend, server: Target, shell: Run, tmp_path: Path, generation: int
) -> None:
    server.offer(IMAGE)
    subprocess.run([sys.executable, "-m", "paddlecloud.pipelines", str(tmp_path)], check=True, capture_output=True)
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", "echo trained"]}
    worker = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    job = f"trained-by-kfp-{generation}"
    given = {"namespace": NAMESPACE, "job": job, "worker": worker}
    run, state = backend.run(generation, COMPONENTS + WAIT[generation], tmp_path, **given)
    assert state == "Succeeded", _story(shell, run)
    assert shell("get", f"paddlejobs.batch.paddlepaddle.org/{job}", "-o", "jsonpath={.status.phase}") == "Completed"
    assert f"[{job}-worker-0] trained" in _logs(shell, run), "the log of the job is the step's"
    shell("delete", f"paddlejobs.batch.paddlepaddle.org/{job}")


class File(NamedTuple):
    """A file that kfp 2 compiled, and the run that is made of it."""

    arguments: dict[str, Any]
    beyond: frozenset[str] = frozenset()
    """Tasks that the backend (2.14.3) runs wrongly, or not at all."""
    fails: bool = False
    """Whether its run fails of that there."""


FILES = {
    # Its containers get the text of `Concat` and `IfPresent` placeholders.
    "parameters": File({"message": 'a "quoted" text\nof two lines'}, frozenset({"show", "show-2"})),
    "artifacts": File({"message": "some data"}),
    "python_steps": File({"a": 0.5, "n": 3}),
    # It looks for an artifact of `OneOf` in branches that were not taken.
    "conditions": File({"n": 4, "name": "y"}, frozenset({"read"}), fails=True),
    # It gives the outputs of nested loops as one list, not as a list of lists.
    "loops": File({"n": 3}, frozenset({"flatten"}), fails=True),
    "handlers": File({"note": "a note"}),
}


@pytest.mark.parametrize("pipeline", FILES)
def test_a_file_gives_there_what_it_gives_when_we_translate_it(
    backend: Backend, server: Target, shell: Run, tmp_path: Path, pipeline: str
) -> None:
    server.offer("paddlecloud/kfp:2")
    path, file, name = GOLDEN / f"{pipeline}.yaml", FILES[pipeline], pipeline.replace("_", "-")
    program = SUBMIT + WAIT[2]
    run, state = backend.run(2, program, tmp_path, file=str(path), arguments=file.arguments, name=f"{name} there")
    assert state == ("Failed" if file.fails else "Succeeded"), _story(shell, run)
    if file.fails:
        failed = {node["displayName"].removesuffix("-driver") for node in _nodes(shell, run, "Failed")}
        assert failed & file.beyond == file.beyond, _story(shell, run)
    theirs = [task for task in backend.tasks(run) if task.outputs and task.name not in file.beyond]
    ours = _translated(shell, path, file.arguments, name)
    assert theirs, "the backend has what its tasks gave"
    for task in theirs:
        assert any(_same(found, task.outputs) for found in ours.get(task.name, ())), (task, ours.get(task.name))


def _translated(shell: Run, file: Path, arguments: dict[str, Any], name: str) -> dict[str, list[dict[str, str]]]:
    """Of each task what it gave, in each iteration of a loop, when Argo runs our translation of the file."""
    workflow = ir.translate(file.read_bytes(), arguments, name, ir.PipelineOptions(cache=False))
    workflow["spec"]["serviceAccountName"] = ACCOUNT
    shell("create", "-f", "-", input=json.dumps(workflow))
    status = until(
        lambda: json.loads(shell("get", f"workflow/{name}", "-o", "json")).get("status", {}),
        lambda found: found.get("phase") in OVER,
        timeout=400,
    )
    shell("delete", f"workflow/{name}", "--wait=false")
    assert status["phase"] == "Succeeded", json.dumps(status)[:4000]
    given: dict[str, list[dict[str, str]]] = {}
    for node in status["nodes"].values():
        values = {each["name"]: each["value"] for each in node.get("outputs", {}).get("parameters", ())}
        given.setdefault(node["displayName"].partition("(")[0], []).append(values)
    return given


def _same(ours: dict[str, str], theirs: dict[str, Any]) -> bool:
    """Ours are texts: a STRING as it is, any other type in JSON."""
    for name, given in theirs.items():
        text = ours.get(name, "null")
        # Argo takes the last line break from what it reads.
        if given.rstrip("\n") != text if isinstance(given, str) else given != json.loads(text):
            return False
    return True


def _nodes(shell: Run, run: str, *phases: str) -> list[dict[str, Any]]:
    text = shell("get", "workflows", "-l", f"pipeline/runid={run}", "-o", "json")
    nodes = [node for each in json.loads(text)["items"] for node in each.get("status", {}).get("nodes", {}).values()]
    return [node for node in nodes if node["phase"] in phases]


def _pods(shell: Run, run: str) -> list[dict[str, Any]]:
    (name,) = shell(
        "get", "workflows", "-l", f"pipeline/runid={run}", "-o", "jsonpath={.items[*].metadata.name}"
    ).split()
    found = json.loads(shell("get", "pods", "-l", f"workflows.argoproj.io/workflow={name}", "-o", "json"))
    return list(found["items"])


def _logs(shell: Run, run: str) -> str:
    names = [pod["metadata"]["name"] for pod in _pods(shell, run)]
    return "\n".join(f"== {name}\n{shell('logs', name, '--all-containers', '--ignore-errors')}" for name in names)


def _story(shell: Run, run: str) -> str:
    """For the report of a failure: the nodes that failed, and all logs."""
    bad = [(node["displayName"], node["type"], node.get("message")) for node in _nodes(shell, run, "Failed", "Error")]
    return f"{bad}\n{_logs(shell, run)[-12000:]}"
