"""Paddle's model suites as PaddleJobs of two workers: the loss falls, a job whose rank is killed goes on where it was,
and the suite's own evaluation and export take what was trained.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness import pdc, until
from paddlecloud.suites import samples

pytestmark = [pytest.mark.paddle, pytest.mark.timeout(500)]

DIES_ONCE = """
{train} & training=$!
if [ "$PADDLE_TRAINER_ID" = 1 ] && [ ! -e /out/killed ]; then
    until [ -s {saved}/.paddlecloud-job ]; do sleep 0.05; done
    touch /out/killed
    kill -9 $training
fi
wait $training
"""
"""Rank 1 is killed when rank 0 has saved for the first time."""


class Training(NamedTuple):
    """What a suite runs, and how its log shows the loss."""

    image: str
    samples: str
    train: str
    saved: str
    """Folder of the weights."""
    after: str
    """Evaluation and export of the weights."""
    loss: str
    says: str
    """What evaluation prints."""
    exported: str


OCR = "-c configs/tiny/det.yml -o Global.save_model_dir=/out"
CLAS = "-c configs/tiny/clas.yml -o Global.output_dir=/out"
TRAININGS = {
    "ocr": Training(
        image="paddlecloud/paddleocr:2.10",
        samples="icdar",
        train=f"python tools/train.py {OCR} Train.loader.batch_size_per_card=4",
        saved="/out",
        after=f"python tools/eval.py {OCR} Global.checkpoints=/out/best_accuracy\n"
        f"python tools/export_model.py {OCR} Global.pretrained_model=/out/latest "
        "Global.save_inference_dir=/out/inference",
        loss=r"global_step: .*?, loss: ([0-9.]+)",
        says=r"hmean:",
        exported="inference/inference.pdmodel",
    ),
    "clas": Training(
        image="paddlecloud/paddleclas:2.4",
        samples="imagefolder",
        train=f"python tools/train.py {CLAS}",
        saved="/out/PPLCNet_x0_25",
        after=f"python tools/eval.py {CLAS} -o Global.pretrained_model=/out/PPLCNet_x0_25/latest\n"
        f"python tools/export_model.py {CLAS} -o Global.pretrained_model=/out/PPLCNet_x0_25/latest "
        "-o Global.save_inference_dir=/out/inference",
        loss=r"\[Train\]\[Epoch .*?, loss: ([0-9.]+)",
        says=r"metric: 0\.\d+",
        exported="inference/inference.json",
    ),
}


@pytest.fixture(scope="module")
def platform_env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("training")
    pdc("up", "--data", str(folder), "--port", "0", "--kubeconfig", str(folder / "kc"))
    yield {**os.environ, "KUBECONFIG": str(folder / "kubeconfig")}
    pdc("down", "--data", str(folder))


def container(training: Training, script: str, data: Path, out: Path) -> dict[str, Any]:
    """The spec of a pod that runs a script in the suite's image."""
    folders = {"data": data, "out": out}
    main = {
        "name": "suite",
        "image": training.image,
        "command": ["bash", "-ec", script],
        "env": [{"name": "OMP_NUM_THREADS", "value": "1"}],
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in folders],
    }
    volumes = [{"name": name, "hostPath": {"path": str(folder)}} for name, folder in folders.items()]
    return {"containers": [main], "volumes": volumes}


def applied(env: dict[str, str], body: dict[str, Any]) -> None:
    pdc("apply", "-f", "-", env=env, input=json.dumps(body))


def phase(env: dict[str, str], kind: str, name: str) -> str:
    found = json.loads(pdc("get", kind, name, "-o", "json", env=env).stdout)
    return str((found.get("status") or {}).get("phase", ""))


@pytest.mark.parametrize("suite", TRAININGS)
def test_two_workers_learn_and_go_on_after_one_was_killed(
    platform_env: dict[str, str], tmp_path: Path, suite: str
) -> None:
    training, env = TRAININGS[suite], platform_env
    data, out = tmp_path / "data", tmp_path / "out"
    samples.generate(training.samples, data)
    out.mkdir()
    script = DIES_ONCE.format(train=training.train, saved=training.saved)
    template = {"spec": container(training, script, data, out)}
    spec = {"cleanPodPolicy": "Never", "worker": {"replicas": 2, "template": template}}
    version = "batch.paddlepaddle.org/v1"
    applied(env, {"apiVersion": version, "kind": "PaddleJob", "metadata": {"name": suite}, "spec": spec})
    until(lambda: phase(env, "pdj", suite) in ("Completed", "Failed"), timeout=300)
    log = pdc("logs", suite, env=env).stdout
    assert phase(env, "pdj", suite) == "Completed", log[-3000:]
    assert (out / "killed").exists()
    assert f"the job was restarted: training goes on from {training.saved}/latest" in log
    losses = [float(text) for text in re.findall(training.loss, log)]
    assert losses[-1] < 0.95 * losses[0], losses
    pod = {**container(training, training.after, data, out), "restartPolicy": "Never"}
    applied(env, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{suite}-after"}, "spec": pod})
    until(lambda: phase(env, "pod", f"{suite}-after") in ("Succeeded", "Failed"), timeout=200)
    log = pdc("logs", f"{suite}-after", env=env).stdout
    assert phase(env, "pod", f"{suite}-after") == "Succeeded", log[-3000:]
    assert re.search(training.says, log), log[-3000:]
    assert (out / training.exported).is_file()
