"""This project as an image: `paddlecloud/paddlecloud`, a small Python with what the package requires and its sources,
and with the recipes of the model suites where they are installed.

Written as a recipe, from the package that runs: `pdc install` has the embedded platform build it for the pods of the
chart. The sources are a separate layer: a changed line costs no new installation.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from pathlib import Path

import paddlecloud
from paddlecloud.local.images import shipped

REPOSITORY = "paddlecloud/paddlecloud"
NAME = f"{REPOSITORY}:latest"
_INSIDE = "/opt/paddlecloud"


def write_recipe(folder: Path) -> Path:
    """A folder with the image.yaml, and beside it the sources it names."""
    place = folder / "paddlecloud"
    if place.exists():
        shutil.rmtree(place)
    packages = {"paddlecloud": Path(paddlecloud.__file__).parent}
    for recipes in shipped.folders():
        if recipes != shipped.OWN:
            packages[shipped.SUITES] = recipes.parent
    for name, sources in packages.items():
        shutil.copytree(sources, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    recipe = {
        "names": [NAME, REPOSITORY, f"{REPOSITORY}:{paddlecloud.__version__}"],
        "pip": _requirements(),
        "files": {f"{_INSIDE}/{name}": name for name in packages},
        "env": {"PYTHONPATH": _INSIDE},
        "user": "65532:65532",
        "entrypoint": ["python", "-m", "paddlecloud.cli.main"],
        "cmd": ["--help"],
    }
    (place / "image.yaml").write_text(json.dumps(recipe, indent=1))
    return folder


def _requirements() -> list[str]:
    """What the package requires and, for the controller and the hub of models, what object stores need."""
    found = []
    for line in importlib.metadata.requires("paddlecloud") or ():
        requirement, _, marker = line.partition(";")
        if "extra ==" not in marker:
            found.append(line)
        elif marker.strip().replace("'", '"') == 'extra == "data"':
            found.append(requirement.strip())
    return found
