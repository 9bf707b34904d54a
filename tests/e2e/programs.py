"""The suite's programs, built from Kubernetes' Go module and kept: `e2e.test`, its runner `ginkgo`, and `agnhost`.

The module file is that of the cluster's engines, so all are of one version of Kubernetes. The suite needs modules that
the engines do not; Go adds them in a copy, because another go.mod would be another engine to build for everybody.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tools import go

ENGINES = Path(__file__).parents[1] / "cluster" / "engines"
SUITE = "k8s.io/kubernetes/test/e2e"
IMAGES = "k8s.io/kubernetes/test/images"
PACKAGES = ("github.com/onsi/ginkgo/v2/ginkgo", f"{IMAGES}/agnhost", f"{IMAGES}/nonewprivs")
CERTIFICATE = ("localhost.crt", "localhost.key")
"""Files of agnhost's image that are no programs."""
MINUTES = 40


class Programs(NamedTuple):
    suite: Path
    ginkgo: Path
    images: Path
    """The folder of what the images hold."""


def version() -> str:
    """Of Kubernetes, whose suite it is."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)", (ENGINES / "go.mod").read_text(), re.MULTILINE)
    assert found, "the engines are built from Kubernetes' module"
    return found[1]


def find_or_build(say: Callable[[str], None]) -> Programs:
    digest = hashlib.sha256(repr((SUITE, PACKAGES)).encode())
    for name in ("go.mod", "go.sum"):
        digest.update((ENGINES / name).read_bytes())
    folder = go.tools() / f"e2e-{digest.hexdigest()[:16]}"
    if not folder.is_dir():
        say("building Kubernetes' conformance tests: about seven minutes, once")
        _build(folder)
    return Programs(folder / "e2e.test", folder / "ginkgo", folder)


def _build(target: Path) -> None:
    program = go.find_or_fetch()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        for name in ("go.mod", "go.sum"):
            shutil.copy(ENGINES / name, folder)
        built = Path(folder) / "built"
        built.mkdir()
        links = ["-trimpath", "-ldflags", "-s -w"]
        env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -buildvcs=false"}
        for command in (
            [program, "build", *links, "-o", f"{built}/", *PACKAGES],
            [program, "test", "-c", *links, "-o", f"{built}/e2e.test", SUITE],
        ):
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60 * MINUTES)
            if done.returncode:
                raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
        place = subprocess.check_output(
            [program, "list", "-f", "{{.Dir}}", f"{IMAGES}/agnhost/porter"], cwd=folder, env=env
        )
        for name in CERTIFICATE:
            shutil.copy(Path(place.decode().strip()) / name, built)
        built.rename(target)
