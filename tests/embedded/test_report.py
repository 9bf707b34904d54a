"""What programs in pods report: shown by pdc, and its token in no log of the platform. The rest is a scenario."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from embedded.test_paddlejob import finished
from harness import Kubectl, Target, pdc, until
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


def test_progress_shows_in_ps(kubectl: Kubectl, server: Target, namespace: str) -> None:
    kubectl("apply", "-f", "-", input=job("reports", TRAINING, workers=2))
    assert finished(kubectl, "reports")["phase"] == "Completed"
    shown = pdc("-n", namespace, "ps", env=server.env).stdout
    assert "PROGRESS" in shown
    assert "40/40 (100%)" in shown


def test_the_token_is_nowhere_but_in_its_secret(kubectl: Kubectl, platform_data: Path) -> None:
    kubectl("apply", "-f", "-", input=job("quiet", TRAINING))
    finished(kubectl, "quiet")
    (secret,) = read(kubectl, "secret", "-l", "paddlepaddle.org/job-name=quiet")["items"]
    bearer = base64.b64decode(secret["data"]["token"]).decode()
    shown = kubectl("get", "pods,configmaps,events,pdj", "-o", "yaml").stdout + kubectl("describe", "pdj,pods").stdout
    assert bearer not in shown
    for log in ("platform.log", "audit.log"):
        assert bearer not in (platform_data / log).read_text()
    kubectl("delete", "pdj", "quiet")
    until(lambda: "quiet-report" not in kubectl("get", "secrets", "-o", "name").stdout, timeout=30)
