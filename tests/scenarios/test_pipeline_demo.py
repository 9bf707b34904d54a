"""The manual's pipeline on both platforms, submitted by kfp's own client, to a URL that answers: the manual's code
unchanged with the kfp it was written for, and the same flow written for kfp 2.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

import paddlecloud
from cluster.harness.argo import namespace_objects
from cluster.operators import NAMESPACE, upgraded
from harness import Kubectl, Target, need, pdc
from paddlecloud.platform import endpoint
from tools import argo, kfp
from tools.s3 import S3Server

from . import manual_pipeline, sample_stores
from .cluster_hands import ClusterHands
from .embedded_hands import EmbeddedHands
from .forwarding import answer, forwarded
from .hands import EXAMPLES, Hands
from .manual_pipeline import SPACE, USER, alone, step_logs
from .sample_stores import Stores

pytestmark = [pytest.mark.paddle, pytest.mark.timeout(1200)]

SECONDS = 1000
SUBMIT = {
    1: """
import json, runpy, sys
import kfp
from kfp import compiler
demo, host, token = sys.argv[1:]
compiler.Compiler().compile(runpy.run_path(demo)["ppocr_detection_demo"], "ppocr_detection_demo.yaml")
client = kfp.Client(host=host, existing_token=token)
made = client.create_run_from_pipeline_package(
    "ppocr_detection_demo.yaml", arguments={}, run_name="paddle ocr detection demo", service_account="pipeline-runner")
run = client.wait_for_run_completion(made.run_id, 1000).run
sys.stdout.write("\\n" + json.dumps([made.run_id, run.status, run.error]) + "\\n")
""",
    2: """
import json, runpy, sys
import kfp
from kfp import compiler
demo, host, token = sys.argv[1:]
compiler.Compiler().compile(runpy.run_path(demo)["text_detection"], "text_detection.yaml")
client = kfp.Client(host=host, existing_token=token)
made = client.create_run_from_pipeline_package(
    "text_detection.yaml", arguments={"epochs": 10}, run_name="text detection", service_account="pipeline-runner")
run = client.wait_for_run_completion(made.run_id, 1000)
sys.stdout.write("\\n" + json.dumps([made.run_id, run.state, run.error and run.error.message]) + "\\n")
""",
}
DEMOS = {1: EXAMPLES / "manual" / "pipeline-demo.py", 2: EXAMPLES / "pipelines" / "text_detection.py"}


@pytest.fixture(scope="session")
def stores_here(s3_server: S3Server) -> Stores:
    return Stores(s3_server)


@pytest.fixture(scope="session", params=["embedded", "cluster"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with sample_stores.platform(request, tmp_path_factory) as target:
        yield target


@pytest.fixture(scope="module")
def whole(server: Target, operators: None) -> Iterator[None]:
    """On a cluster the chart with all that the demo uses."""
    values = {"serving__enabled": "true", "pipelinesApi__enabled": "true", "pipelinesApi__namespace": SPACE}
    values["pipelinesApi__runner"] = "false"  # its namespace is made later, and so is the account, with the same rights
    with nullcontext() if server.embedded else upgraded(server, **values):
        yield


@pytest.fixture(scope="module")
def stores(
    request: pytest.FixtureRequest, server: Target, whole: None, kubectl_binary: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stores]:  # fmt: skip
    with sample_stores.stores_of(request, server, kubectl_binary, tmp_path_factory) as made:
        yield made


@pytest.fixture(scope="module")
def shell(server: Target, stores: Stores, kubectl_binary: str, kubectl_cache: Path) -> Iterator[Kubectl]:
    """kubectl in the manual's namespace, with what the manual's readers have made there and the data in the bucket."""
    env = {**server.env, "KUBECACHEDIR": str(kubectl_cache)}

    def run(*args: str, check: bool = True, input: str | None = None, timeout: float = 60) -> Any:
        command = [kubectl_binary, "-n", SPACE, *args]
        done = subprocess.run(command, env=env, input=input, capture_output=True, text=True, timeout=timeout)
        assert not check or done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
        return done

    need("argo", have=not run("get", "workflows", check=False).returncode, hint="`make cluster WITH=argo,juicefs`")
    if not server.embedded:
        run("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(namespace_objects(argo.files(), SPACE)))
    manual_pipeline.prepare(run, server, stores)
    manual_pipeline.fill(run, stores)
    yield run
    if not server.embedded:
        manual_pipeline.remove_volumes(run)


@pytest.fixture(scope="module")
def gpu(shell: Kubectl, server: Target, kubectl_binary: str) -> Iterator[None]:
    """All pods go to a node that says it has a GPU: training needs one beside its data. Tests of other files have all
    nodes again."""
    hands: Hands = EmbeddedHands(server) if server.embedded else ClusterHands(server, kubectl_binary)
    with hands.declared({"nvidia.com/gpu": "1"}, {}) as node, alone(shell, node):
        yield


@pytest.fixture
def host(shell: Kubectl, server: Target) -> str:
    """The address of the API of Kubeflow Pipelines."""
    if server.embedded:
        found = endpoint.find(server.kubeconfig.parent)
        assert found is not None
        return found.pipelines_url
    address = shell("get", "service", "ml-pipeline", "-n", NAMESPACE, "-o", "jsonpath={.spec.clusterIP}").stdout
    return f"http://{address}:8888"


def submitted(generation: int, host: str, token: str, folder: Path) -> tuple[str, str, str]:
    """The id of the run, its last state and its error, by the program of a reader of the manual."""
    subprocess.run([sys.executable, "-m", "paddlecloud.pipelines", str(folder)], check=True, capture_output=True)
    env = {**os.environ, "PYTHONPATH": str(Path(paddlecloud.__file__).parents[1])} if generation == 2 else os.environ
    command = [str(kfp.python(generation)), "-W", "ignore", "-c", SUBMIT[generation]]
    done = subprocess.run(
        [*command, str(DEMOS[generation]), host, token],
        capture_output=True, text=True, cwd=folder, env=env, timeout=SECONDS + 100,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    run, state, error = json.loads(done.stdout.rstrip().rpartition("\n")[2])
    return run, state.capitalize(), error or ""


def ask(shell: Kubectl, server: Target, url: str, path: str, body: Any) -> Any:
    """On a cluster no DNS server of this machine knows the name: the gateway of Knative gets it as the host."""
    name = urlsplit(url).netloc
    gateway = ("get", "service", "kourier", "-n", "kourier-system", "-o", "jsonpath={.spec.clusterIP}")
    connection = http.client.HTTPConnection(name if server.embedded else shell(*gateway).stdout, timeout=120)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", "Host": name})
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 200, text
    return json.loads(text)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "generation",
    [pytest.param(1, id="the manual's code", marks=pytest.mark.core), pytest.param(2, id="written for kfp 2")],
)
def test_the_manuals_demo_runs_from_its_data_to_an_answering_url(
    shell: Kubectl, server: Target, host: str, kubectl_binary: str, tmp_path: Path, generation: int
) -> None:
    token = shell("create", "token", USER, "--duration=2h").stdout.strip()
    run, state, error = submitted(generation, host, token, tmp_path)
    chosen = shell("get", "workflows", "-l", f"pipeline/runid={run}", "-o", "json").stdout
    (workflow,) = json.loads(chosen)["items"]
    logs = step_logs(shell, workflow["metadata"]["name"])
    assert state == "Succeeded", f"{error}\n{json.dumps(workflow['status'])[:6000]}\n{logs[-8000:]}"
    losses = [float(text) for text in re.findall(r"global_step: .*?, loss: ([0-9.]+)", logs)]
    assert losses[-1] < 0.95 * losses[0], "the log of the training is the step's"
    assert re.search(r"ppocr INFO: resume from /mnt/task-center/models/best_accuracy", logs), (
        "what was trained is exported"
    )
    jobs = shell("get", "jobs,paddlejobs.batch.paddlepaddle.org,samplejobs", "-o", "name").stdout
    assert jobs == "", "what ran to its end is gone"
    url = shell("get", "pds", "ppocr-det", "-o", "jsonpath={.status.url}").stdout
    picture = {"name": "x", "datatype": "FP32", "shape": [1, 3, 64, 64], "data": [0.0] * 3 * 64 * 64}
    (marks,) = ask(shell, server, url, "/v2/models/server/infer", {"inputs": [picture]})["outputs"]
    assert marks["shape"] == [1, 1, 64, 64], "for each pixel how likely it is text"
    assert all(0 <= mark <= 1 for mark in marks["data"])
    shell("rollout", "status", "deployment/ppocr-det-visualdl", "--timeout=60s")
    with forwarded(kubectl_binary, server, SPACE, "svc/ppocr-det-visualdl", 8040) as address:
        query = "run=/mnt/task-center/models/vdl&tag=TRAIN/loss"
        curve = json.loads(answer(f"http://{address}/app/api/scalar/list?{query}")[1])["data"]
        assert curve[-1][2] < 0.95 * curve[0][2], "the curve of the training, as the manual's port-forward shows it"
    if server.embedded:  # on a cluster the ModelHub is another part of the chart
        found = json.loads(pdc("-n", SPACE, "trace", "pds/ppocr-det", "-o", "json", env=server.env).stdout)
        (version,) = found["from"]
        (trained,) = version["from"]
        assert (version["kind"], trained["kind"], trained["name"], trained["state"]) == (
            "model", "pdj", "ppocr-det", "gone",
        )  # fmt: skip
        assert [one["name"] for one in trained["from"]][:1] == ["data-center"], "the data that it was trained with"
        assert trained["facts"]["run-name"] == workflow["metadata"]["name"]
        forth = json.loads(pdc("-n", SPACE, "trace", "sampleset/data-center", "-o", "json", env=server.env).stdout)
        assert '"name": "ppocr-det", "state": "exists"' in json.dumps(forth["to"]), "forward again"
    shell("delete", "pds/ppocr-det", "deployment/ppocr-det-visualdl", "service/ppocr-det-visualdl")
    removed = launched(server, "dataset", "--name=icdar2015", "--action=delete", "--source_uri=x", "--source_secret=x")
    assert "SampleJob kubeflow/icdar2015-remove: done" in removed
    phase = shell("get", "sampleset", "data-center", "-o", "jsonpath={.status.phase}").stdout
    assert phase == "Ready", "it is shared"


def launched(server: Target, *arguments: str) -> str:
    """The log of a launcher that is run by hand."""
    command = [sys.executable, "-m", "paddlecloud.pipelines.launchers", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=server.env, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
