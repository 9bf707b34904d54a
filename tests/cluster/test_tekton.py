"""Images are built by pods, without privileges, pushed to a registry, and run by nodes; those of suites by real Tekton.

Pods of the fixture reach no package index, so one with the wheels that are needed is served here. What images are built
on is the fixture's own: published images of Python and Paddle have pip, which the environments here lack.
"""

from __future__ import annotations

import asyncio
import functools
import http.server
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from harness import Kubectl, Target, need, pdc, until
from paddlecloud.kube.resource import Object
from paddlecloud.local.images import shipped
from paddlecloud.local.images.ci import tekton
from paddlecloud.local.images.store import ImageStore
from paddlecloud.local.images.suites import PROJECT, read_suites
from scenarios.hands import apply

from .harness import own_image, pushed, python_image
from .harness.base_images import ImageCache
from .harness.layout import HOST_ADDRESS, Layout
from .harness.registry import Catalogue

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]

SUITE = "paddleocr"
PADDLE = "paddlepaddle/paddle:3.3.1"
KEY = "a key for pushes"
REGISTRY = f"{pushed.HOST}/team"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an index with what the suite's image installs upon Paddle's."""
    folder = tmp_path_factory.mktemp("index")
    store = ImageStore()
    recipe = store.find(f"{PROJECT}/{SUITE}")
    assert recipe is not None
    plan = store.plan(recipe)
    wanted = [each for each in plan.pip if not each.startswith("paddlepaddle")]
    pip = [sys.executable, "-m", "pip"]
    common = ["--quiet", "--wheel-dir", str(folder / "wheels")]
    subprocess.run([*pip, "wheel", *common, *wanted], check=True, timeout=600)
    subprocess.run([*pip, "wheel", *common, "--no-deps", *plan.pip_no_deps], check=True, timeout=600)
    for wheel in (folder / "wheels").iterdir():
        place = folder / "simple" / re.sub(r"[-_.]+", "-", wheel.name.partition("-")[0]).lower()
        place.mkdir(parents=True, exist_ok=True)
        (place / wheel.name).symlink_to(wheel)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer((HOST_ADDRESS, 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{HOST_ADDRESS}:{server.server_port}/simple"
        server.shutdown()


@pytest.fixture(scope="module", autouse=True)
def _bases(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What Dockerfiles begin with."""
    recipes, images = tmp_path_factory.mktemp("recipes"), Layout.default().images
    python = f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"
    bodies = {
        python: {"names": [python], "pip": ["pip"]},
        PADDLE: {"names": [PADDLE], "base": "paddlecloud/paddle:3.3", "pip": ["pip"]},
    }
    for number, (name, body) in enumerate(bodies.items()):
        (recipes / str(number)).mkdir()
        (recipes / str(number) / "image.yaml").write_text(json.dumps(body))
        environment = asyncio.run(ImageStore(folders=[recipes]).build(name))
        made = python_image.environment_image(ImageCache(images), environment)
        Catalogue(images).add({name: made.digest})


@pytest.fixture(autouse=True)
def _registry(kubectl: Kubectl) -> None:
    have = kubectl("get", "namespace", "tekton-pipelines", check=False).returncode == 0
    need("tekton", have=have, hint='`make cluster WITH="tekton tekton-triggers"`')


@pytest.fixture
def ci(server: Target, kubectl: Kubectl, namespace: str, index: str) -> None:
    """The builds of the suite are set up in the namespace, as `pdc image ci` prints them."""
    server.offer(own_image.NAME)
    kubectl("create", "secret", "generic", "hook", f"--from-literal=token={KEY}")
    flags = ["--push", REGISTRY, "--plain-http", "--pip-index", index, "--webhook-secret", "hook", "-n", namespace]
    apply(kubectl, pdc("image", "ci", SUITE, *flags).stdout)


def tags(repository: str) -> list[str]:
    answer = requests.get(f"http://{pushed.HOST}/v2/{repository}/tags/list", timeout=10)
    assert answer.status_code in (200, 404), answer.text
    return sorted(answer.json().get("tags") or [])


def test_a_build_that_fails_in_the_middle_leaves_no_image(
    server: Target, namespace: str, kubectl: Kubectl, index: str, tmp_path: Path
) -> None:
    (tmp_path / "image.yaml").write_text(json.dumps({"names": ["broken:1"], "pip": ["no-such-package==1.0"]}))
    target = f"{pushed.HOST}/team/broken:1"
    flags = ["--on-cluster", "--push", target, "--plain-http", "--pip-index", index, "-n", namespace]
    done = pdc("image", "build", "-f", str(tmp_path), *flags, check=False, env=server.env, timeout=300)
    assert done.returncode == 1, done.stderr
    assert "no-such-package" in done.stderr
    assert tags("team/broken") == []
    assert json.loads(kubectl("get", "pods", "-o", "json").stdout)["items"] == []


def test_an_image_of_ones_own_is_built_on_the_cluster_and_used(
    server: Target, namespace: str, kubectl: Kubectl, index: str, tmp_path: Path
) -> None:
    (tmp_path / "say.py").write_text("print('said in the image')\n")
    body = {
        "names": ["mine:1"],
        "pip": ["setuptools"],
        "files": {"/srv/say.py": "say.py"},
        "cmd": ["python3", "/srv/say.py"],
    }
    (tmp_path / "image.yaml").write_text(json.dumps(body))
    target = f"{pushed.HOST}/team/mine:1"
    flags = ["--on-cluster", "--push", target, "--plain-http", "--pip-index", index, "-n", namespace]
    said = pdc("image", "build", "-f", str(tmp_path), *flags, env=server.env, timeout=300).stdout.strip()
    assert re.fullmatch(rf"{re.escape(target)}@sha256:[0-9a-f]{{64}}", said)
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": said.replace(":1@", "@")}]}
    apply(kubectl, json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mine"}, "spec": pod}))
    kubectl("wait", "pod/mine", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=120s", timeout=130)
    assert "said in the image" in kubectl("logs", "mine").stdout


def runs(kubectl: Kubectl) -> list[Object]:
    found: list[Object] = json.loads(kubectl("get", "pipelineruns", "-o", "json").stdout)["items"]
    return found


def ended(kubectl: Kubectl, name: str) -> str:
    """The reason for which a run ended; empty while it has not."""
    status = json.loads(kubectl("get", "pipelinerun", name, "-o", "json").stdout).get("status") or {}
    over = [each for each in status.get("conditions") or () if each["status"] != "Unknown"]
    return str(over[0]["reason"]) if over else ""


def created(kubectl: Kubectl, body: Object) -> str:
    made = json.loads(kubectl("create", "-f", "-", "-o", "json", input=json.dumps(body)).stdout)
    return str(made["metadata"]["name"])


def pod(name: str, container: Object) -> str:
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", **container}]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def test_a_suite_is_built_by_tekton_pushed_pulled_by_a_node_and_trains(
    ci: None, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    path = shipped.suites_file()
    assert path is not None
    (suite,) = [each for each in read_suites(path).suites if each.repository_name == SUITE]
    settings = tekton.Settings(registry=REGISTRY, namespace=namespace, tool=own_image.NAME)
    base = PADDLE.partition(":")[2]
    name = created(kubectl, tekton.run(tekton.SINGLE, SUITE, tekton.parameters(suite, [base], settings)))
    reason = until(lambda: ended(kubectl, name), timeout=900, every=2)
    logs = kubectl("logs", "-l", f"tekton.dev/pipelineRun={name}", "--all-containers", "--tail=40", check=False).stdout
    assert reason == "Succeeded", logs
    run = json.loads(kubectl("get", "pipelinerun", name, "-o", "json").stdout)
    results = {each["name"]: each["value"] for each in run["status"]["results"]}
    image, digest = results["IMAGE_URL-0"], results["IMAGE_DIGEST-0"]
    assert re.fullmatch(rf"{re.escape(REGISTRY)}/{SUITE}:{re.escape(suite.version)}-cpu-[0-9a-f]{{6}}", image)
    assert {image.rpartition(":")[2], f"{suite.version}-cpu-latest"} <= set(tags(f"team/{SUITE}"))

    pdc("sample-data", "icdar", str(tmp_path / "data"), "--count", "8")
    command = ["python3", "tools/train.py", "-c", "configs/tiny/det.yml", "-o", "Global.epoch_num=1"]
    trains = {
        "image": f"{image.rpartition(':')[0]}@{digest}",
        "command": command,
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    body = json.loads(pod("trains", trains))
    body["spec"]["volumes"] = [{"name": "data", "hostPath": {"path": str(tmp_path / "data")}}]
    apply(kubectl, json.dumps(body))
    kubectl("wait", "pod/trains", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=400s", timeout=410)
    assert "best metric" in kubectl("logs", "trains").stdout


def test_signed_pushes_and_the_schedule_start_builds_and_nothing_else_does(ci: None, kubectl: Kubectl) -> None:
    kubectl("wait", "eventlistener/image-builds", "--for=condition=Ready", "--timeout=180s", timeout=190)
    schedule = json.loads(kubectl("get", "cronjob", f"build-{SUITE}", "-o", "json").stdout)
    (signed,) = schedule["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    forged = {**signed, "name": "main", "env": [{"name": "TOKEN", "value": "another key"}]}
    apply(kubectl, pod("forged", forged))
    kubectl("wait", "pod/forged", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=180s", timeout=190)
    kubectl("create", "job", "now", f"--from=cronjob/build-{SUITE}")
    kubectl("wait", "job/now", "--for=condition=Complete", "--timeout=180s", timeout=190)
    (started,) = until(lambda: runs(kubectl))
    assert started["spec"]["pipelineRef"]["name"] == tekton.MULTI


def test_old_runs_go_and_the_newest_stay(ci: None, kubectl: Kubectl) -> None:
    names = [created(kubectl, tekton.run("no-such-pipeline", SUITE, {})) for _ in range(5)]
    kubectl("create", "job", "clean", "--from=cronjob/image-builds-cleanup")
    kubectl("wait", "job/clean", "--for=condition=Complete", "--timeout=180s", timeout=190)
    left = {each["metadata"]["name"] for each in until(lambda: runs(kubectl), lambda found: len(found) == 3)}
    assert left < set(names)
