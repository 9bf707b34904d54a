"""Images are built by pods, without privileges, pushed to a registry, and run by nodes.

Pods of the fixture reach no package index, so one is served here. Its base images are this fixture's own.
"""

from __future__ import annotations

import asyncio
import functools
import http.server
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from harness import Kubectl, Target, need, pdc
from paddlecloud.local.images.store import ImageStore
from scenarios.hands import apply

from .harness import pushed, python_image
from .harness.base_images import ImageCache
from .harness.layout import HOST_ADDRESS, Layout
from .harness.registry import Catalogue

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an index that has setuptools."""
    folder = tmp_path_factory.mktemp("index")
    place = folder / "simple" / "setuptools"
    place.mkdir(parents=True)
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(place), "setuptools"]
    subprocess.run(download, check=True, timeout=300)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer((HOST_ADDRESS, 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{HOST_ADDRESS}:{server.server_port}/simple"
        server.shutdown()


@pytest.fixture(autouse=True)
def _registry(kubectl: Kubectl, tmp_path: Path) -> None:
    """What a Dockerfile begins with: the published image of Python has pip."""
    have = kubectl("get", "namespace", "tekton-pipelines", check=False).returncode == 0
    need("tekton", have=have, hint='`make cluster WITH="tekton tekton-triggers"`')
    recipes = tmp_path / "recipes" / "python"
    recipes.mkdir(parents=True)
    name = f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"
    (recipes / "image.yaml").write_text(json.dumps({"names": [name], "pip": ["pip"]}))
    environment = asyncio.run(ImageStore(folders=[recipes.parent]).build(name))
    images = Layout.default().images
    Catalogue(images).add({name: python_image.environment_image(ImageCache(images), environment).digest})


def tags(repository: str) -> list[str]:
    answer = requests.get(f"http://{pushed.HOST}/v2/{repository}/tags/list", timeout=10)
    assert answer.status_code in (200, 404), answer.text
    return sorted(answer.json().get("tags") or [])


def test_a_build_that_fails_in_the_middle_leaves_no_image(
    server: Target, namespace: str, kubectl: Kubectl, index: str, tmp_path: Path
) -> None:
    (tmp_path / "image.yaml").write_text(json.dumps({"names": ["broken:1"], "pip": ["no-such-package==1.0"]}))
    target = f"{pushed.HOST}/team/broken:1"
    flags = ["--on-cluster", "--push", target, "--plain-http", "--pip-index", index, "-n", namespace]
    done = pdc("image", "build", "-f", str(tmp_path), *flags, check=False, env=server.env, timeout=300)
    assert done.returncode == 1, done.stderr
    assert "no-such-package" in done.stderr
    assert tags("team/broken") == []
    assert json.loads(kubectl("get", "pods", "-o", "json").stdout)["items"] == []


def test_an_image_of_ones_own_is_built_on_the_cluster_and_used(
    server: Target, namespace: str, kubectl: Kubectl, index: str, tmp_path: Path
) -> None:
    (tmp_path / "say.py").write_text("print('said in the image')\n")
    body = {
        "names": ["mine:1"],
        "pip": ["setuptools"],
        "files": {"/srv/say.py": "say.py"},
        "cmd": ["python3", "/srv/say.py"],
    }
    (tmp_path / "image.yaml").write_text(json.dumps(body))
    target = f"{pushed.HOST}/team/mine:1"
    flags = ["--on-cluster", "--push", target, "--plain-http", "--pip-index", index, "-n", namespace]
    said = pdc("image", "build", "-f", str(tmp_path), *flags, env=server.env, timeout=300).stdout.strip()
    assert re.fullmatch(rf"{re.escape(target)}@sha256:[0-9a-f]{{64}}", said)
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": said.replace(":1@", "@")}]}
    apply(kubectl, json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mine"}, "spec": pod}))
    kubectl("wait", "pod/mine", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=120s", timeout=130)
    assert "said in the image" in kubectl("logs", "mine").stdout
