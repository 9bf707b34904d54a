"""An image is carried in a bundle to a machine that reaches no package index, and pods run on it there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import pdc
from unit.local.images.wheels import write_wheel

IMAGE = "team/demo:v1"


def machine(place: Path) -> dict[str, str]:
    """The environment of a user with a home, a cache and their own platform, who has no network for packages."""
    place.mkdir()
    closed = "http://127.0.0.1:1/simple"
    index = {"PIP_INDEX_URL": closed, "PIP_CONFIG_FILE": os.devnull, "UV_INDEX_URL": closed, "UV_OFFLINE": "1"}
    own = {"HOME": str(place), "XDG_CACHE_HOME": str(place / "cache"), "PADDLECLOUD_HOME": str(place / "data")}
    known = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "PIP_FIND_LINKS")}
    return {**known, **index, **own}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Of an image with a package that was found in a folder of wheels; the machine that built it is gone."""
    place = tmp_path / "with-network"
    env = machine(place)
    (place / "wheels").mkdir()
    write_wheel(place / "wheels")
    (place / "image.yaml").write_text(f"pip: [tiny]\npip-options: [--no-index, --find-links, {place}/wheels]\n")
    pdc("image", "build", "-f", str(place), "-t", IMAGE, env=env)
    pdc("image", "export", IMAGE, "--to", str(tmp_path / "images.tar"), env=env)
    shutil.rmtree(place)
    return tmp_path / "images.tar"


@pytest.fixture
def offline(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A running platform on a machine without a network."""
    env = machine(tmp_path / "offline")
    data = env["PADDLECLOUD_HOME"]
    pdc("up", "--data", data, "--port", "0", env=env)
    yield {**env, "KUBECONFIG": f"{data}/kubeconfig"}
    pdc("down", "--data", data, env=env)


@pytest.mark.timeout(300)
def test_given_no_network_when_a_bundle_is_imported_then_pods_run_on_its_image(
    bundle: Path, offline: dict[str, str], tmp_path: Path
) -> None:
    own = tmp_path / "recipe"
    own.mkdir()
    (own / "image.yaml").write_text("pip: [tiny]\n")
    failed = pdc("image", "build", "-f", str(own), "-t", "team/other:v1", env=offline, check=False)
    assert failed.returncode == 1, "no index can be reached"
    assert "without a network: pdc image import FILE" in failed.stderr

    assert pdc("image", "import", str(bundle), env=offline).stdout.startswith(f"{IMAGE} imported in ")
    bundle.unlink()
    (listed,) = json.loads(pdc("image", "ls", IMAGE, "-o", "json", env=offline).stdout)["items"]
    assert listed["state"] == "built"
    program = "import tiny; print('value', tiny.VALUE)"
    done = pdc("run", "--image", IMAGE, "--", "python", "-c", program, env=offline, cwd=tmp_path)
    assert "value 41" in done.stdout
