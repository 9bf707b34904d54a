"""What programs report from inside their pods shows on the job, whichever replica leads; ranks that hang are found out.

The programs use `paddlecloud.data.report`: the embedded platform lends it to every pod, images for clusters bring it.
"""

from __future__ import annotations

import base64
import json

import pytest

from harness import Kubectl, Target, until

from .hands import Hands, apply, events, job, reached, read, release, status

pytestmark = [pytest.mark.core, pytest.mark.timeout(300), pytest.mark.usefixtures("operators")]

OWN_IMAGE = "paddlecloud/paddlecloud:latest"
RANKS = ("reports-worker-0", "reports-worker-1")

TRAINING = """
import os, pathlib, time
from paddlecloud.data import report
pathlib.Path("/tmp/pid").write_text(str(os.getpid()))
step = 0
while not pathlib.Path("/tmp/go").exists():
    step = min(step + 1, 30)
    report.progress(step=step, total=40, loss=1 / step)
    report.checkpoint("/checkpoint/last", step=step)
    time.sleep(0.05)
while not pathlib.Path("/tmp/end").exists():  # a Service takes a moment to lead to the next controller
    report.progress(step=40, total=40, loss=0.025)
    time.sleep(0.05)
"""

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


@pytest.fixture
def image(server: Target) -> str:
    return "python" if server.embedded else OWN_IMAGE


def reporting(name: str, image: str, program: str, **spec: object) -> str:
    body = json.loads(job(name, "", **spec))
    container = body["spec"]["worker"]["template"]["spec"]["containers"][0]
    container |= {"image": image, "command": ["python3", "-c", program]}
    return json.dumps(body)


def test_progress_and_checkpoint_show_on_the_job_and_survive_the_controller(
    kubectl: Kubectl, hands: Hands, image: str
) -> None:
    apply(kubectl, reporting("reports", image, TRAINING))
    until(lambda: (status(kubectl, "reports").get("progress") or {}).get("step") == 30, timeout=90)
    found = status(kubectl, "reports")
    assert (found["progress"]["totalSteps"], found["checkpoint"]["path"]) == (40, "/checkpoint/last")
    assert found["heartbeatTime"]
    header, row = kubectl("get", "pdj", "reports", "-o", "wide").stdout.splitlines()
    assert row[header.index("PROGRESS") :].startswith("30/40 (75%)")
    (secret,) = read(kubectl, "secret", "-l", "paddlepaddle.org/job-name=reports")["items"]
    bearer = base64.b64decode(secret["data"]["token"]).decode()
    assert bearer not in kubectl("get", "pods,configmaps,events,pdj", "-o", "yaml").stdout

    hands.stop_controller()
    hands.start_controller()
    release(kubectl, *RANKS)
    until(lambda: status(kubectl, "reports")["progress"]["step"] == 40, timeout=90)
    for rank in RANKS:
        kubectl("exec", rank, "--", "touch", "/tmp/end", check=False)
    found = reached(kubectl, "reports", "Completed")
    assert (found["progress"]["step"], found["progress"]["loss"]) == (40, 0.025)
    assert found.get("restarts") is None


def test_a_hung_rank_is_restarted_and_what_it_was_doing_is_reported(kubectl: Kubectl, image: str) -> None:
    apply(kubectl, reporting("hung", image, HANGS, workers=1, hangDetection={"heartbeatSeconds": 8}))
    found = reached(kubectl, "hung", "Completed")
    assert (found["restarts"], [failure["failureClass"] for failure in found["failures"]]) == (1, ["Hung"])
    said = events(kubectl, "hung")
    assert "waits_for_a_peer_that_never_comes" in said["StackDump"]
    assert "no report from hung-worker-0 for 8 seconds" in said["Restarting"]
