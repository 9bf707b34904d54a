"""The manual's data storage demo, its volume a folder that all nodes see: there is no NFS server here.

That one which does not answer is named as the cause is a scenario (`test_paddlejob_manual`).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness import Kubectl, Target, until
from scenarios.hands import EXAMPLES, apply, reached, read
from scenarios.test_paddlejob import learned
from scenarios.test_paddlejob_manual import images, put
from unit.api.examples import documents

pytestmark = [pytest.mark.full, pytest.mark.paddle, pytest.mark.timeout(600), pytest.mark.usefixtures("operators")]


def test_a_job_trains_from_the_claim_of_the_manual(kubectl: Kubectl, server: Target, tmp_path: Path) -> None:
    for image in images("manual/data-storage.yaml"):
        server.offer(image)
    folder = tmp_path / "nas" / "wide_and_deep"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text((EXAMPLES / "programs" / "wide_and_deep.py").read_text())
    volume, claim = documents(EXAMPLES / "manual" / "pv-pvc.yaml")
    for field in ("nfs", "mountOptions"):
        del volume["spec"][field]
    volume["spec"] |= {"hostPath": {"path": str(tmp_path / "nas")}, "persistentVolumeReclaimPolicy": "Retain"}
    try:
        for obj in (volume, claim):
            apply(kubectl, json.dumps(obj))
        until(lambda: read(kubectl, "pvc", "nfs-pvc").get("status", {}).get("phase") == "Bound", timeout=60)
        name = put(kubectl, "manual/data-storage.yaml", cleanPolicy="Never")
        reached(kubectl, name, "Completed", timeout=400)
        for index in range(2):
            learned(kubectl, f"{name}-worker-{index}")
        kubectl("delete", "pdj", name)
    finally:
        kubectl("delete", "pvc/nfs-pvc", "pv/nfs-pv", "--wait=false")
