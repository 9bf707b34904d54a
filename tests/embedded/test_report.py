"""Programs in pods report through `paddlecloud.data.report`, and the job shows it; those that hang are found out."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from embedded.test_paddlejob import finished
from harness import Kubectl, Target, pdc, until
from paddlecloud.kube.resource import Object
from scenarios.hands import read


def job(name: str, program: str, *, workers: int = 1, **spec: object) -> str:
    container = {"name": "paddle", "image": "python", "command": ["python3", "-c", program]}
    worker = {"replicas": workers, "template": {"spec": {"containers": [container]}}}
    return json.dumps(
        {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {"cleanPodPolicy": "Never", "worker": worker, **spec},
        }
    )


TRAINING = """
import time
from paddlecloud.data import report
for step in range(1, 41):
    report.progress(step=step, total=40, loss=1 / step)
    time.sleep(0.02)
report.checkpoint("/checkpoint/last", step=40)
"""


def test_progress_shows_in_wide_output_and_in_ps(kubectl: Kubectl, server: Target, namespace: str) -> None:
    kubectl("apply", "-f", "-", input=job("told", TRAINING, workers=2))
    status = finished(kubectl, "told")
    assert (status["phase"], status["progress"]["step"], status["progress"]["loss"]) == ("Completed", 40, 0.025)
    assert status["checkpoint"]["path"] == "/checkpoint/last"
    header, row = kubectl("get", "pdj", "told", "-o", "wide").stdout.splitlines()
    start = header.index("PROGRESS")
    assert row[start:].startswith("40/40 (100%)")
    assert header.split()[-2:] == ["PROGRESS", "ETA"]
    shown = pdc("-n", namespace, "ps", env=server.env).stdout
    assert "PROGRESS" in shown
    assert "40/40 (100%)" in shown


def test_the_token_is_nowhere_but_in_its_secret(kubectl: Kubectl, platform_data: Path) -> None:
    kubectl("apply", "-f", "-", input=job("quiet", TRAINING))
    finished(kubectl, "quiet")
    bearer = base64.b64decode(read(kubectl, "secret", "quiet-report")["data"]["token"]).decode()
    shown = kubectl("get", "pods,configmaps,events,pdj", "-o", "yaml").stdout + kubectl("describe", "pdj,pods").stdout
    assert bearer not in shown
    for log in ("platform.log", "audit.log"):
        assert bearer not in (platform_data / log).read_text()
    kubectl("delete", "pdj", "quiet")
    until(lambda: "quiet-report" not in kubectl("get", "secrets", "-o", "name").stdout, timeout=30)


HANGS = """
import os, time
from paddlecloud.data import report
report.progress(step=1, total=10)
def waits_for_a_peer_that_never_comes():
    time.sleep(600)
if os.environ["PADDLECLOUD_REPORT_URL"].split("/")[-3] == "0":
    waits_for_a_peer_that_never_comes()
report.progress(step=10, total=10)
"""


def test_a_hung_job_is_restarted_and_its_stacks_are_told(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", input=job("hung", HANGS, hangDetection={"heartbeatSeconds": 3}))
    status: Object = finished(kubectl, "hung")
    assert (status["phase"], status["restarts"]) == ("Completed", 1)
    assert [failure["failureClass"] for failure in status["failures"]] == ["Hung"]
    events = {event["reason"]: event["message"] for event in read(kubectl, "events")["items"]}
    assert "waits_for_a_peer_that_never_comes" in events["StackDump"]
    assert "no report from hung-worker-0 for 3 seconds" in events["Restarting"]
