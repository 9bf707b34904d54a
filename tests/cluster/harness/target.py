"""The cluster as tests see it: where it is, how an image gets there, and its machines."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness import Target, need

from . import python_image
from .cluster import Cluster
from .errors import HarnessError
from .layout import Layout
from .machine import running_machines


def find(kubeconfig: str | None) -> Target:
    """The cluster that a kubeconfig names, or the running fixture. Skips, or fails if it is required, without one."""
    layout = Layout.default()
    place = Path(kubeconfig).expanduser() if kubeconfig else layout.kubeconfig
    ours = place == layout.kubeconfig
    have = place.exists() and (not ours or bool(running_machines(layout)))
    need("cluster", have=have, hint=f"no cluster at {place}; `make cluster` starts one")
    return Target(place, embedded=False, offer=offer) if ours else Target(place, embedded=False)


def fixture() -> Cluster:
    """The cluster from below, whose machines can be hurt: only where tests run on the one that this machine runs."""
    layout = Layout.default()
    ours = bool(running_machines(layout)) and os.environ.get("PDC_KUBECONFIG", str(layout.kubeconfig))
    need("nodes", have=ours == str(layout.kubeconfig), hint="only machines of the fixture can be switched off")
    return Cluster(layout, say=print)


def restore(number: int) -> None:
    """Switch a lost node on again. A cluster that does not become whole ends the run: every later test would fail."""
    cluster = fixture()
    try:
        cluster.node_on(number)
        cluster.await_whole()
    except HarnessError as error:
        pytest.exit(f"node{number} was switched off by a test and the cluster did not recover: {error}", returncode=3)


def offer(name: str) -> None:
    """Have the fixture's registry serve an image; one that it serves already costs a look."""
    python_image.offer(Layout.default(), name, say=lambda line: print(line, file=sys.stderr))
