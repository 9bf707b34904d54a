"""This project as an image: `paddlecloud/paddlecloud`, a small Python with what the package requires and this checkout.

The sources are a layer of their own: a changed line costs no new installation.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from pathlib import Path

NAME = "paddlecloud/paddlecloud:latest"
_SOURCES = Path(__file__).parents[3] / "src" / "paddlecloud"
_INSIDE = "/opt/paddlecloud"


def write_recipe(folder: Path) -> Path:
    """A folder with the image.yaml, and beside it the sources it names."""
    place = folder / "paddlecloud"
    if place.exists():
        shutil.rmtree(place)
    shutil.copytree(_SOURCES, place / "paddlecloud", ignore=shutil.ignore_patterns("__pycache__"))
    requirements = [line for line in importlib.metadata.requires("paddlecloud") or () if "extra ==" not in line]
    recipe = {
        "names": [NAME, "paddlecloud/paddlecloud"],
        "pip": requirements,
        "files": {f"{_INSIDE}/paddlecloud": "paddlecloud"},
        "env": {"PYTHONPATH": _INSIDE},
        "user": "65532:65532",
        "entrypoint": ["python", "-m", "paddlecloud.cli.main"],
        "cmd": ["--help"],
    }
    (place / "image.yaml").write_text(json.dumps(recipe, indent=1))
    return folder
