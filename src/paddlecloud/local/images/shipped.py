"""Recipes that come with packages: those of the platform, and those of `paddlecloud-suites` where it is installed.

The second package holds stand-ins for images of PaddlePaddle's manuals, with models and pictures. It is found by its
name on the import path and not imported. Which images it has is listed here too, so that one that is asked for without
the package is refused with the name of the package.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from paddlecloud.local.images.reference import match_rank, parse_reference

OWN = Path(__file__).parent / "recipes"
SUITES = "paddlecloud_suites"
SUITES_FILE = "suites.yaml"
SUITE_IMAGES = (
    "jinmionhaobaidu/resnet:latest",
    "jinmionhaobaidu/resnetcanary:latest",
    "paddlecloud/model-suite:latest",
    "paddlecloud/paddle-serving:latest",
    "paddlecloud/paddleclas:2.4",
    "paddlecloud/paddleclas:2.4-cpu-latest",
    "paddlecloud/paddleclas:2.4-gpu-cuda12.6-cudnn9.5-latest",
    "paddlecloud/paddleocr:2.10",
    "paddlecloud/paddleocr:2.10-cpu-latest",
    "paddlecloud/paddleocr:2.10-gpu-cuda12.6-cudnn9.5-latest",
    "paddlecloud/paddleocr:2.5-cpu-efbb0a",
    "paddlecloud/paddleocr:2.5-gpu-cuda10.2-cudnn7-efbb0a",
    "paddlecloud/paddleocr:latest",
    "registry.baidubce.com/kuizhiqing/demo-resnet:v1",
    "registry.baidubce.com/kuizhiqing/demo-wide-and-deep:v1",
    "registry.baidubce.com/paddle-operator/demo-resnet:v1",
    "registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1",
    "registry.baidubce.com/paddle-operator/paddle-ubuntu:2.0.0-18.04",
    "registry.baidubce.com/paddleflow-public/bert-serving:latest",
    "registry.baidubce.com/paddleflow-public/criteoctr-serving:latest",
    "registry.baidubce.com/paddleflow-public/lac-serving:latest",
    "registry.baidubce.com/paddleflow-public/paddleclas:2.3",
    "registry.baidubce.com/paddleflow-public/paddledetection:2.4",
    "registry.baidubce.com/paddleflow-public/paddleocr:2.1.3-gpu-cuda10.2-cudnn7",
    "registry.baidubce.com/paddleflow-public/resnet-serving:latest",
    "registry.baidubce.com/paddleflow-public/resnetcanary-serving:latest",
    "registry.baidubce.com/paddleflow-public/serving:v0.6.2",
)


def folders() -> list[Path]:
    """Of recipes; a later folder wins over an earlier one."""
    return [OWN, *(Path(place) / "recipes" for place in _suites())]


def suites_file() -> Path | None:
    """What the suites' recipes are made from, where they are installed."""
    found = [Path(place) / SUITES_FILE for place in _suites()]
    return found[0] if found else None


def missing_package(image: str) -> str:
    """Which package an image of the suites takes that is not installed, as a sentence; empty for every other image."""
    wanted = parse_reference(image).without_digest()
    if _suites() or all(match_rank(parse_reference(name), wanted) is None for name in SUITE_IMAGES):
        return ""
    return (
        f'image "{image}" comes with the package paddlecloud-suites, which is not installed: '
        'pip install "paddlecloud[suites]", or pip install ./suites in a checkout'
    )


def _suites() -> list[str]:
    found = importlib.util.find_spec(SUITES)
    return list(found.submodule_search_locations or ()) if found else []
