"""Fixtures of the tests on a real cluster. `server`, and with it `kubectl` and `namespace`, is that cluster here.

Tests that need it are left out unless PDC_CLUSTER=1 (`make test-cluster` sets it); tests of the harness's own logic run
always. `core` tests run in CI, `full` ones when somebody asks; `lifecycle` tests start and stop clusters themselves.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness import Target, need

from .harness.layout import Layout
from .harness.machine import running_machines

_HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "core: on a real cluster, in CI")
    config.addinivalue_line("markers", "full: on a real cluster, when asked for")
    config.addinivalue_line("markers", "lifecycle: starts and stops clusters; none may be running")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not os.environ.get("PDC_CLUSTER"):
        items[:] = [item for item in items if not _needs_cluster(item)]


def _needs_cluster(item: pytest.Item) -> bool:
    if _HERE not in item.path.parents:
        return False
    return item.get_closest_marker("lifecycle") is not None or "server" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def server() -> Target:
    """The cluster that PDC_KUBECONFIG names, or the one that `make cluster` started."""
    named = os.environ.get("PDC_KUBECONFIG")
    layout = Layout.default()
    kubeconfig = Path(named) if named else layout.kubeconfig
    have = kubeconfig.exists() and (bool(named) or bool(running_machines(layout)))
    need("cluster", have=have, hint=f"no cluster at {kubeconfig}; `make cluster` starts one")
    return Target(kubeconfig, embedded=False)
