"""Every object of the manual, as it stands but for its namespace: a strict server makes it and says so.

A quota keeps pods out: what the jobs and services do is shown by their own scenarios.
"""

from __future__ import annotations

import pytest
import yaml

from harness import Kubectl
from manual.test_commands import CREATED, SERVICE, SERVICE_NAME
from paddlecloud.kube.resource import Object
from unit.api.examples import ROOT, documents

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operators")]

MANUAL = ROOT / "manual"


@pytest.fixture(autouse=True)
def _no_pods(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "no-pods", "--hard=pods=0")


def text(*objects: Object) -> str:
    """Objects for the namespace that kubectl is given."""
    for obj in objects:
        obj["metadata"].pop("namespace", None)
    return yaml.safe_dump_all(objects)


@pytest.mark.parametrize(
    ("verb", "file", "printed"), [(row[0], *row[2:]) for row in CREATED], ids=[r[2] for r in CREATED]
)
def test_a_strict_server_makes_what_the_manual_prints(kubectl: Kubectl, verb: str, file: str, printed: str) -> None:
    body = text(*documents(MANUAL / file))
    try:
        assert kubectl(verb, "--validate=strict", "-f", "-", input=body).stdout.strip() == printed
    finally:
        kubectl("delete", "-f", "-", "--ignore-not-found", "--wait=false", input=body)


def test_the_service_of_the_manual_brings_its_namespace(kubectl: Kubectl) -> None:
    space, service = documents(MANUAL / SERVICE)
    there = kubectl("get", "namespace", space["metadata"]["name"], check=False).returncode == 0
    first, second = kubectl("apply", "--validate=strict", "-f", "-", input=text(space, service)).stdout.splitlines()
    try:
        assert first.startswith(f"namespace/{space['metadata']['name']} ")
        assert there or first.endswith(" created"), "another word where somebody else has made it"
        assert second == f"{SERVICE_NAME} created"
    finally:
        kubectl("delete", "-f", "-", "--wait=false", input=text(service))
        if not there:
            kubectl("delete", "namespace", space["metadata"]["name"], "--timeout=60s", timeout=70)
