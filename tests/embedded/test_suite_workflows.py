"""`pdc suite`: a folder is made, run on the suite's own code, and a service answers with what was trained."""

from __future__ import annotations

import base64
import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paddlecloud
from harness import pdc
from paddlecloud.cli.failures import CONFLICT
from tools import kfp

pytestmark = [pytest.mark.paddle, pytest.mark.timeout(1500)]
SPACE = "kubeflow"


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("suite")
    source = str(Path(paddlecloud.__file__).parents[1])
    env = {**os.environ, "PADDLECLOUD_HOME": str(folder), "KUBECONFIG": str(folder / "kc"), "PYTHONPATH": source}
    pdc("up", "--port", "0", env=env, timeout=100)
    yield env
    pdc("down", "-y", env=env)


def found(env: dict[str, str], *command: str) -> Any:
    return json.loads(pdc(*command, "-n", SPACE, "-o", "json", env=env).stdout)


def ask(url: str, path: str, body: Any) -> Any:
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_text_detection_from_samples_to_an_answer(env: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "words"
    made = pdc("suite", "init", "ocr-det", str(folder), "--count", "8", env=env).stdout
    assert "PaddleOCR on 12 generated samples" in made
    again = pdc("suite", "init", "ocr-det", str(folder), env=env, check=False)
    assert (again.returncode, "is not empty" in again.stderr) == (CONFLICT, True)

    flags = ("--python", str(kfp.python(2)), "-p", "epochs=4")
    assert "succeeded" in pdc("suite", "run", str(folder), *flags, env=env, timeout=1300).stdout
    (run,) = found(env, "get", "workflows")["items"]
    said = pdc("pipeline", "logs", run["metadata"]["name"], "-n", SPACE, env=env).stdout
    assert "hmean:" in said
    assert "reference: ocr-det:1" in said
    assert 'answer: {"boxes": [' in said
    version = found(env, "get", "modelversion", "ocr-det.1")["spec"]
    assert "hmean" in version["metrics"]
    assert version["origin"]["job"] == "ocr-det-train"
    assert version["origin"]["data"] == "ocr-det-data"

    url = found(env, "get", "pds", "ocr-det")["status"]["url"]
    picture = base64.b64encode((folder / "data" / "img" / "val0.png").read_bytes()).decode()
    shapes = ask(url, "/ocr-det/prediction", {"feed": [{"image": picture}, {"image": picture}]})["result"]
    assert len(shapes["boxes"]) == 2
    tensor = {"name": "image", "datatype": "BYTES", "shape": [1], "data": [picture]}
    (boxes,) = ask(url, "/v2/models/ocr-det/infer", {"inputs": [tensor]})["outputs"]
    assert json.loads(boxes["data"][0]) == shapes["boxes"][0]
