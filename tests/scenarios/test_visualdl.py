"""The curves of a training that runs: real VisualDL beside a job that writes records with LogWriter, on a claim.

The program is a small training in numpy: a line is fitted to points, one step after the other, until it is released.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import paddlecloud as pc
from harness import Kubectl, Target, need, pdc, until
from paddlecloud.visualdl.server import IMAGE
from tools import browser

from .forwarding import answer, forwarded, streaming
from .hands import apply, events, reached, read, release

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operators")]

CURVE = (41, 50, 225)
"""The colour in which VisualDL 2.5.3 draws the first run."""
CHART = (0.05, 0.2, 0.42, 0.75)
"""Where the first chart of the page lies, as parts of the window: left, top, right, bottom."""

TRAIN = """
import pathlib, threading
import numpy as np
from visualdl import LogWriter
np.float = float  # VisualDL 2.5.3 uses it for curves of precision and recall; numpy has it no more
generator = np.random.default_rng(7)
x = generator.normal(size=(256, 3))
y = x @ [1.0, -2.0, 0.5] + generator.normal(scale=0.05, size=256)
weights, pause = np.zeros(3), threading.Event()
with LogWriter(logdir="/task/log/train") as writer:
    writer.add_pr_curve("recall", labels=np.array([0, 1, 1]), predictions=np.array([0.1, 0.8, 0.9]), step=0)
    step = 0
    while not pathlib.Path("/tmp/go").exists():
        error = x @ weights - y
        weights -= 0.02 * x.T @ error / len(x)
        writer.add_scalar("loss", float((error ** 2).mean()), step)
        step += 1
        pause.wait(0.25)
print("steps:", step)
"""


def training(name: str = "ppocr-det", program: str = TRAIN, **mount: str) -> str:
    container = {
        "name": "paddle",
        "image": IMAGE,
        "command": ["python", "-c", program],
        "volumeMounts": [{"name": "task", "mountPath": "/task", **mount}],
    }
    pod = {"containers": [container], "volumes": [{"name": "task", "persistentVolumeClaim": {"claimName": "task"}}]}
    return json.dumps(
        {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {"cleanPodPolicy": "Never", "worker": {"replicas": 1, "template": {"spec": pod}}},
        }
    )


@pytest.fixture
def claim(server: Target, kubectl: Kubectl, namespace: str) -> Iterator[None]:
    """A claim of the name `task`; on a cluster, where nobody makes volumes, with a folder of a node behind it."""
    server.offer(IMAGE)
    wish: dict[str, Any] = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "task"}, "spec": wish}
    if server.embedded:
        apply(kubectl, json.dumps(body))
        yield
        return
    volume, node = f"{namespace}-task", read(kubectl, "nodes")["items"][0]["metadata"]["name"]
    chosen = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "hostPath": {"path": f"/var/lib/{volume}", "type": "DirectoryOrCreate"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [chosen]}]}},
    }
    wish |= {"storageClassName": "", "volumeName": volume}
    made = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume}, "spec": spec}
    apply(kubectl, json.dumps(made))
    apply(kubectl, json.dumps(body))
    yield
    kubectl("delete", "pv", volume, "--wait=false")


@pytest.fixture
def job(claim: None, kubectl: Kubectl) -> str:
    apply(kubectl, training())
    reached(kubectl, "ppocr-det", "Running")
    return "ppocr-det"


def losses(page: str, run: str = "/task/log/train") -> list[list[Any]]:
    """The points of the curve: time, step and value."""
    status, text = answer(f"{page}/api/scalar/list?run={run}&tag=loss")
    assert status == 200, text
    return json.loads(text)["data"] or []


def tags(page: str) -> Any:
    return json.loads(answer(f"{page}/api/scalar/tags")[1])["data"]


def url_in(line: str) -> str | None:
    hit = re.search(r"VisualDL is at (\S+)", line)
    return hit[1] if hit else None


def shown(server: Target, namespace: str, *flags: str) -> contextlib.AbstractContextManager[str]:
    """The URL that `pdc visualdl` prints, while it forwards."""
    command = [sys.executable, "-m", "paddlecloud.cli.main", "-n", namespace, "visualdl", "ppocr-det", *flags]
    return streaming(command, server, url_in)


def columns_with_the_curve(page: str, folder: Path) -> int:
    """A worker of the page reads the points; the browser's time does not wait for it, so it may be early."""
    return len(browser.columns_of(CURVE, browser.screenshot(f"{page}/scalar", folder), within=CHART))


def test_the_curve_of_a_running_job_is_seen_in_a_browser(
    kubectl: Kubectl, server: Target, namespace: str, job: str, tmp_path: Path
) -> None:
    need("browser", have=browser.find() is not None, hint=browser.HINT)
    with shown(server, namespace, "--logdir", "/task/log", "--cache-timeout", "1") as page:
        assert page.endswith("/app")
        before = until(lambda: losses(page), lambda points: len(points) > 20, what="the curve")
        assert before[0][2] > 2 * before[-1][2], "it learns"
        until(
            lambda: columns_with_the_curve(page, tmp_path), lambda count: count > 150, timeout=200, what="the picture"
        )
        document = browser.page(f"{page}/scalar", tmp_path)
        assert "/task/log/train" in document
        until(lambda: len(losses(page)), lambda count: count > len(before), what="the curve grows")
        status = read(kubectl, "pdj", "ppocr-det")["status"]
        assert status["phase"] == "Running", "all of this while it trains"


def test_the_manuals_port_forward_leads_to_visualdl_which_goes_with_its_job(
    kubectl: Kubectl, kubectl_binary: str, server: Target, namespace: str, job: str
) -> None:
    """As the manual has it, with the job's name: kubectl port-forward svc/ppocr-det-visualdl -n kubeflow 8040:8040"""
    command = [sys.executable, "-m", "paddlecloud.cli.main", "-n", namespace, "visualdl", "ppocr-det", "--detach"]
    done = subprocess.run(command, capture_output=True, text=True, env=server.env, timeout=600)
    assert done.returncode == 0, done.stderr
    with forwarded(kubectl_binary, server, namespace, "svc/ppocr-det-visualdl", 8040) as address:
        assert answer(f"http://{address}/app/index")[0] == 200, "a request without Accept-Language"
        chinese = {"Accept-Language": "zh-CN,zh;q=0.9"}
        assert answer(f"http://{address}/", **chinese)[0] == 200, "a browser's first request"
        until(lambda: losses(f"http://{address}/app"))
        assert "recall" in str(json.loads(answer(f"http://{address}/app/api/pr-curve/tags")[1])["data"])
    pods = read(kubectl, "pods", "-l", "visualdl=ppocr-det-visualdl")["items"]
    assert [pod["status"]["phase"] for pod in pods] == ["Running"]
    assert all(mount["readOnly"] for mount in pods[0]["spec"]["containers"][0]["volumeMounts"])
    kubectl("delete", "pdj", "ppocr-det")
    left = ("get", "deployments,services,pods", "-l", "visualdl=ppocr-det-visualdl", "-o", "name")
    until(lambda: kubectl(*left).stdout, "", what="what is left of it")


def test_all_flags_of_the_manual_reach_visualdl(kubectl: Kubectl, server: Target, namespace: str, job: str) -> None:
    copy = "mkdir -p /task/more && rm -rf /task/more/again && cp -r /task/log/train /task/more/again"
    until(
        lambda: kubectl("exec", "ppocr-det-worker-0", "--", "sh", "-c", copy, check=False).returncode, 0, what="records"
    )
    flags = ["--logdir", "/task/log", "/task/more", "--model", "/task/net.onnx", "--host", "0.0.0.0", "--port", "18041"]
    flags += ["--cache-timeout", "1", "--language", "zh", "--public-path", "/curves"]
    kubectl("exec", "ppocr-det-worker-0", "--", "touch", "/task/net.onnx")
    with shown(server, namespace, *flags) as page:
        assert page.endswith("/curves")
        assert until(lambda: tags(page)["runs"], lambda runs: len(runs) == 2) == ["/task/log/train", "/task/more/again"]
        with urllib.request.urlopen(f"{page}/index", timeout=60) as response:
            assert "vdl_lng=zh" in str(response.headers["Set-Cookie"])
    service = read(kubectl, "service", "ppocr-det-visualdl")["spec"]
    assert [port["port"] for port in service["ports"]] == [18041]
    (container,) = read(kubectl, "deployment", "ppocr-det-visualdl")["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [
        *("--logdir", "/task/log", "/task/more", "--host", "0.0.0.0", "--port", "18041", "--model", "/task/net.onnx"),
        *("--language", "zh", "--public-path", "/curves", "--cache-timeout", "1"),
    ]
    with shown(server, namespace, "--logdir", "/task/log", "--api-only", "--host", "127.0.0.1") as api:
        assert until(lambda: tags(api)["runs"]) == ["/task/log/train"]
        assert answer(f"{api}/app/index")[0] == 404, "the API alone"
    with shown(server, namespace, "--logdir", "/task/log", "--rm") as page:
        assert until(lambda: tags(page)["runs"]) == ["/task/log/train"]
    assert kubectl("get", "deployments,services", "-o", "name").stdout == "", "--rm"


def test_the_pipeline_component_serves_the_same_curves(
    kubectl: Kubectl, kubectl_binary: str, server: Target, namespace: str, job: str
) -> None:
    """`visualdl` of the manual's components, with the flags of its table, run as its step runs it."""
    launcher = [sys.executable, "-m", "paddlecloud.pipelines.launchers", "visualdl", "--name", "board"]
    place = ["--namespace", namespace, "--pvc_name", "task", "--mount_path", "/task", "--logdir", "/task/log"]
    flags = ["--host", "0.0.0.0", "--port", "18042", "--cache_timeout", "1", "--public_path", "/c", "--language", "en"]
    done = subprocess.run([*launcher, *place, *flags], capture_output=True, text=True, env=server.env, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    with forwarded(kubectl_binary, server, namespace, "svc/board", 18042) as address:
        until(lambda: losses(f"http://{address}/c"))
    done = subprocess.run(
        [*launcher, *place, "--action", "delete"], capture_output=True, text=True, env=server.env, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert kubectl("get", "deployments,services", "-l", "visualdl=board", "-o", "name").stdout == ""


def metrics(server: Target, namespace: str, name: str, *flags: str) -> dict[str, Any]:
    """What `pdc metrics` knows of each tag."""
    found = json.loads(pdc("-n", namespace, "metrics", name, *flags, "-o", "json", env=server.env).stdout)
    return {one["tag"]: one for one in found["items"]}


def test_metrics_are_read_without_visualdl_while_the_job_runs_and_after_it(
    kubectl: Kubectl, server: Target, namespace: str, job: str
) -> None:
    shown = ("-n", namespace, "metrics", "ppocr-det")
    until(lambda: pdc(*shown, env=server.env, check=False).returncode, 0, what="the first scalar")
    early = metrics(server, namespace, "ppocr-det")["loss"]
    assert early["steps"] == list(range(len(early["steps"])))
    with pc.connect(kubeconfig=server.kubeconfig, namespace=namespace) as client:
        (later,) = client.jobs.get("ppocr-det").metrics("/task/log")
        assert (later.run, later.tag) == ("/task/log/train", "loss")
        assert later.values[: len(early["values"])] == early["values"]
    release(kubectl, "ppocr-det-worker-0")
    reached(kubectl, "ppocr-det", "Completed")
    (count,) = re.findall(r"steps: (\d+)", kubectl("logs", "ppocr-det-worker-0").stdout)
    last = metrics(server, namespace, "ppocr-det", "--logdir", "/task/log", "--tag", "l*")["loss"]
    assert last["steps"] == list(range(int(count)))
    assert last["values"][: len(early["values"])] == early["values"]
    header, row = pdc(*shown, env=server.env).stdout.splitlines()
    assert header.split() == ["RUN", "TAG", "STEP", "LAST", "LEAST", "GREATEST", "CURVE"]
    assert row.split()[:3] == ["/task/log/train", "loss", str(int(count) - 1)]
    curve = row.split()[-1]
    assert (curve[0], curve[-1]) == ("█", "▁"), "it learned"
    until(lambda: "metrics" in kubectl("get", "pods", "-o", "name").stdout, False, what="pods that read are left")


def test_jobs_are_compared_with_each_other_and_with_one_that_is_gone(
    kubectl: Kubectl, server: Target, namespace: str, job: str
) -> None:
    """Both write to /task/log/train: the second into a folder of the claim that it mounts there."""
    apply(kubectl, training("again", subPath="second"))
    reached(kubectl, "again", "Running")
    runs = ["/jobs/again/task/log/train", "/jobs/ppocr-det/task/log/train"]
    flags = ("again", "--logdir", "/task/log", "--cache-timeout", "1")
    with shown(server, namespace, *flags) as page:
        assert until(lambda: sorted(tags(page)["runs"]), lambda found: len(found) == 2) == runs
        for run in runs:
            until(lambda run=run: losses(page, run), lambda points: len(points) > 3, what=run)
    both = ("-n", namespace, "metrics", "ppocr-det", "again", "--logdir", "/task/log", "--tag", "loss")
    header, *rows = pdc(*both, env=server.env).stdout.splitlines()
    assert header.split()[:3] == ["JOB", "RUN", "TAG"]
    assert [row.split()[:3] for row in rows] == [[name, "/task/log/train", "loss"] for name in ("ppocr-det", "again")]
    kubectl("delete", "pdj", "again", "--wait")
    left = metrics(server, namespace, "pvc/task", "--logdir", "second/log")["loss"]
    assert left["run"] == "/claims/task/second/log/train"
    assert left["steps"] == list(range(len(left["steps"])))
    with shown(server, namespace, "pvc/task", "--cache-timeout", "1") as page:
        gone = "/claims/task/second/log/train"
        points = until(lambda: losses(page, gone), lambda points: len(points) == len(left["steps"]), what="its curve")
        assert [point[1] for point in points] == left["steps"]


MANUAL = """
from visualdl import LogWriter

# 在`./log/scalar_test/train`路径下建立日志文件
with LogWriter(logdir="./log/scalar_test/train") as writer:
    # 使用scalar组件记录一个标量数据,将要记录的所有数据都记录在该writer中
    writer.add_scalar(tag="acc", step=1, value=0.5678)
    writer.add_scalar(tag="acc", step=2, value=0.6878)
    writer.add_scalar(tag="acc", step=3, value=0.9878)
"""
MANUAL_IN_STEPS = """
from visualdl import LogWriter

writer = LogWriter(logdir="./log/scalar_test/train")

writer.add_scalar(tag="acc", step=1, value=0.5678)
writer.add_scalar(tag="acc", step=2, value=0.6878)
writer.add_scalar(tag="acc", step=3, value=0.9878)

writer.close()
"""
MANUAL_WRONG = """
from visualdl import LogWriter
with LogWriter(logdir="./log/scalar_test/train") as writer:  # 将会创建日志文件vdlrecords.xxxx1.log
    writer.add_scalar(tag="acc", step=1, value=0.5678)  # 数据写入./log/scalar_test/train/vdlrecords.xxxx1.log
import time; time.sleep(1.1)  # files are named after the second in which they were made
with LogWriter(logdir="./log/scalar_test/train") as writer:  # 将会创建日志文件vdlrecords.xxxx2.log
    writer.add_scalar(tag="acc", step=2, value=0.6878)  # 数据将会写入./log/scalar_test/train/vdlrecords.xxxx2.log
"""


@pytest.mark.parametrize(
    ("program", "steps", "in_visualdl"),
    [(MANUAL, [1, 2, 3], [1, 2, 3]), (MANUAL_IN_STEPS, [1, 2, 3], [1, 2, 3]), (MANUAL_WRONG, [1, 2], [2])],
    ids=["with", "in steps", "two writers"],
)
@pytest.mark.usefixtures("claim")
def test_logwriter_of_the_manual_rightly_and_wrongly_used(
    kubectl: Kubectl, server: Target, namespace: str, program: str, steps: list[int], in_visualdl: list[int]
) -> None:
    """Two writers make two files, of which VisualDL shows the newer one alone; the metrics have both."""
    body = json.loads(training(program=program))
    body["spec"]["worker"]["template"]["spec"]["containers"][0]["workingDir"] = "/task"
    apply(kubectl, json.dumps(body))
    reached(kubectl, "ppocr-det", "Completed")
    acc = metrics(server, namespace, "ppocr-det", "--logdir", "./log")["acc"]
    assert (acc["run"], acc["steps"]) == ("/task/log/scalar_test/train", steps)
    assert acc["values"] == pytest.approx([0.5678, 0.6878, 0.9878][: len(steps)])
    with shown(server, namespace, "--logdir", "./log") as page:
        text = answer(f"{page}/api/scalar/list?run=/task/log/scalar_test/train&tag=acc")[1]
        assert [point[1] for point in json.loads(text)["data"]] == in_visualdl


@pytest.mark.parametrize(
    ("role", "command", "lacks"),
    [
        ("view", ["visualdl"], "services"),
        ("services", ["visualdl"], "deployments"),
        ("view", ["metrics", "--logdir", "/task/log"], "pods/exec"),
    ],
    ids=["who may read", "who may make Services alone", "who may not run programs in pods"],
)
def test_who_lacks_a_right_is_refused_and_leaves_nothing(
    kubectl: Kubectl,
    server: Target,
    namespace: str,
    job: str,
    tmp_path: Path,
    role: str,
    command: list[str],
    lacks: str,
) -> None:
    verbs = "--verb=get,list,watch,create,update,patch,delete"
    kubectl("create", "role", "services", verbs, "--resource=services")
    kubectl("create", "serviceaccount", "guest")
    roles = ["--clusterrole=view"] if role == "view" else ["--clusterrole=view", "--role=services"]
    for number, one in enumerate(roles):
        kubectl("create", "rolebinding", f"guest-{number}", one, f"--serviceaccount={namespace}:guest")
    config = yaml.safe_load(server.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": kubectl("create", "token", "guest").stdout.strip()}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    env = {**server.env, "KUBECONFIG": str(tmp_path / "kubeconfig")}
    done = pdc("-n", namespace, command[0], "ppocr-det", *command[1:], env=env, check=False)
    assert done.returncode == 6, done.stderr
    assert lacks in done.stderr
    assert kubectl("get", "deployments,services", "-l", "visualdl", "-o", "name").stdout == ""
    assert kubectl("get", "pods", "-o", "name").stdout == "pod/ppocr-det-worker-0\n"


def test_other_pods_need_the_uid_of_the_job(kubectl: Kubectl, server: Target, namespace: str, job: str) -> None:
    """All addresses of the embedded platform are of loopback, as port-forwards are: there everybody is let through."""
    command = [sys.executable, "-m", "paddlecloud.cli.main", "-n", namespace, "visualdl", "ppocr-det", "--detach"]
    done = subprocess.run(command, capture_output=True, text=True, env=server.env, timeout=600)
    assert done.returncode == 0, done.stderr
    uid = read(kubectl, "pdj", "ppocr-det")["metadata"]["uid"]
    url = f"http://ppocr-det-visualdl.{namespace}:8040/app/api/runs"
    program = f"""
import http.cookiejar, urllib.error, urllib.request as web
client = web.build_opener(web.HTTPCookieProcessor(http.cookiejar.CookieJar()))
def status(url):
    try:
        return client.open(url, timeout=60).status
    except urllib.error.HTTPError as error:
        return error.code
print([status({url!r} + query) for query in ("", "?key=wrong", "?key={uid}", "")])
"""
    container = {"name": "asks", "image": IMAGE, "command": ["python", "-c", program]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asks"}}
    apply(kubectl, json.dumps({**pod, "spec": {"containers": [container], "restartPolicy": "Never"}}))
    until(lambda: read(kubectl, "pod", "asks")["status"].get("phase"), "Succeeded", timeout=200)
    first = [200, 200] if server.embedded else [403, 403]
    assert json.loads(kubectl("logs", "asks").stdout) == [*first, 200, 200]


def test_what_has_the_name_and_is_not_the_jobs_is_left_alone(
    kubectl: Kubectl, server: Target, namespace: str, job: str
) -> None:
    kubectl("create", "service", "clusterip", "ppocr-det-visualdl", "--tcp=80:80")
    command = [sys.executable, "-m", "paddlecloud.cli.main", "-n", namespace, "visualdl", "ppocr-det"]
    done = subprocess.run(command, capture_output=True, text=True, env=server.env, timeout=100)
    assert done.returncode == 4, done.stderr
    assert "there is already a Service ppocr-det-visualdl, and it does not belong to this job" in done.stderr
    assert kubectl("get", "deployments", "-o", "name").stdout == ""
    assert "Failed" not in str(events(kubectl, "ppocr-det"))
