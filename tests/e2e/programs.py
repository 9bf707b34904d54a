"""The suite's programs, built from Kubernetes' Go module and kept: `e2e.test`, its runner `ginkgo`, and `agnhost`.

The module file is that of the cluster's engines, so all are of one version of Kubernetes. The suite needs modules that
the engines do not; Go adds them in a copy, because another go.mod would be another engine to build for everybody.
"""

from __future__ import annotations

import re
import shutil
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
    folder = go.tools() / f"e2e-{go.key_of(ENGINES, SUITE, PACKAGES)}"
    if not folder.is_dir():
        say("building Kubernetes' conformance tests: about seven minutes, once")
        try:
            go.build(ENGINES, _make, folder)
        except go.BuildError as error:
            raise SystemExit(str(error)) from error
    return Programs(folder / "e2e.test", folder / "ginkgo", folder)


def _make(run: go.Run, built: Path) -> None:
    run("build", *go.LINKED, "-o", f"{built}/", *PACKAGES)
    run("test", "-c", *go.LINKED, "-o", f"{built}/e2e.test", SUITE)
    place = Path(run("list", "-f", "{{.Dir}}", f"{IMAGES}/agnhost/porter").strip())
    for name in CERTIFICATE:
        shutil.copy(place / name, built)
