"""Fixtures of the conformance suite: the API, a namespace of the test's own, and a custom kind for all."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from paddlecloud.kube import config
from paddlecloud.kube.resource import NAMESPACES, PODS, SERVICEACCOUNTS, Resource

from . import widgets as kinds
from .world import CRDS, Api, ScratchNamespace, eventually

if TYPE_CHECKING:
    from harness import Target

_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of it is judged on a real API server in CI."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.core)


@pytest.fixture(scope="session")
def api(server: Target) -> Iterator[Api]:
    """The server under test as its administrator sees it."""
    made = Api(config.load(str(server.kubeconfig)))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _no_old_warnings(api: Api) -> None:
    api.warnings.clear()


@pytest.fixture(scope="session")
def idle_namespaces(api: Api) -> Iterator[list[str]]:
    """Deleted when all tests are done, unless the cluster is deleted then (`PDC_DISPOSABLE`).

    Kubernetes deletes a namespace by more than a hundred requests. Hundreds of namespaces at once keep its controller
    busy for a minute, in which tests of deletion would wait, these and those that run beside them.
    """
    names: list[str] = []
    yield names
    for name in () if os.environ.get("PDC_DISPOSABLE") else names:
        ScratchNamespace(api, "").delete(NAMESPACES, name)


@pytest.fixture
def namespace(api: Api, server: Target, idle_namespaces: list[str]) -> Iterator[str]:
    """A fresh namespace, deleted without waiting afterwards; made over the kept connection, which costs no process."""
    clusterwide = ScratchNamespace(api, "")
    name = f"c-{os.getpid()}-{next(_numbers)}"
    clusterwide.make(NAMESPACES, name)
    yield name
    if server.embedded or ScratchNamespace(api, name).list(PODS).items:
        clusterwide.delete(NAMESPACES, name)
    else:
        idle_namespaces.append(name)


@pytest.fixture
def here(api: Api, namespace: str) -> ScratchNamespace:
    """The API inside the fresh namespace, once pods can be made there."""
    made = ScratchNamespace(api, namespace)
    eventually(lambda: made.exists(SERVICEACCOUNTS, "default"), True)
    return made


@pytest.fixture
def clusterwide(api: Api) -> ScratchNamespace:
    """For kinds without a namespace; what is made through it is not cleaned up by anybody else."""
    return ScratchNamespace(api, "")


@pytest.fixture(scope="session")
def group() -> str:
    """An API group that belongs to this run."""
    return f"c{os.getpid()}.example.org"


@pytest.fixture(scope="session")
def widgets(api: Api, group: str) -> Iterator[Resource]:
    """The custom kind of `widgets.py`."""
    made = kinds.install(api, kinds.definition(group, "widgets", "Widget"))
    yield made
    ScratchNamespace(api, "").delete(CRDS, f"widgets.{group}")
