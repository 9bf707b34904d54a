"""Argo's own command line, built once in the cache of the cluster's engines, and the files that its module comes with.

Building it takes minutes and a download, so no test run does that unasked: `python -m tools.argo`, run in this folder's
parent, does, and so does whatever starts a cluster with Argo. The files take Go and seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cluster.harness.engines import Builder, module_folder
from cluster.harness.errors import HarnessError
from cluster.harness.layout import ENGINES, Layout
from tools import go

ENGINE = "argo"
MODULE = "github.com/argoproj/argo-workflows/v3"


def find() -> Path | None:
    """The program `argo`, if it was built."""
    builder = _builder()
    return builder.binary(ENGINE, "argo") if builder.has(ENGINE) else None


def find_or_build() -> Path:
    return _builder().ensure([ENGINE])["argo"]


def files() -> Path:
    """The folder with `examples`, `test/e2e` and `manifests` of its module."""
    kept = _builder().manifests(ENGINE) / MODULE
    return kept if kept.is_dir() else module_folder(go.find_or_fetch(), MODULE, ENGINES / ENGINE)


def _builder() -> Builder:
    return Builder(Layout.default().engines, say=lambda line: print(line, file=sys.stderr))


if __name__ == "__main__":
    try:
        print(find_or_build())
    except HarnessError as error:
        sys.exit(f"error: {error}")
