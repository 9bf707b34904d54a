"""The manual's installation by kubectl alone: kinds, controllers, its job, its tables, and all of it taken away again.

The files are applied as they are checked in. The release that other tests use stands aside meanwhile: two controllers
would take turns at one object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml
from rendered import DEPLOY

from harness import Kubectl, Target, until
from manual.test_tables import cells
from paddlecloud.api import KINDS

from .harness import own_image
from .harness.target import fixture
from .release import EXAMPLES, WIDE_AND_DEEP, aside

pytestmark = [pytest.mark.full, pytest.mark.timeout(600), pytest.mark.usefixtures("operators")]

CRD = DEPLOY / "v1" / "crd.yaml"
EXAMPLE = EXAMPLES / "wide-and-deep.yaml"
GONE_WITH_IT = re.compile(r"(Warning: .*|Error from server \(NotFound\): .* not found)")
"""What kubectl may write to stderr while it deletes a namespace and the objects in it."""
OURS = ",".join(kind.name for kind in KINDS)


@pytest.fixture
def bare(kubectl: Kubectl, server: Target) -> Iterator[None]:
    """A cluster with none of our kinds and no controller that works: the fixture's, nobody else's data is at risk."""
    fixture()
    for image in (own_image.NAME, WIDE_AND_DEEP):
        server.offer(image)
    kubectl("delete", "namespace", "paddle-system", "--ignore-not-found", timeout=120)
    # Namespaces of earlier tests may still wait for their pods (Knative's have a grace period of five minutes), and
    # Kubernetes deletes other objects of a namespace after its pods only.
    shown = kubectl("get", OURS, "-A", "-o", "jsonpath={.items[*].metadata.namespace}").stdout
    for namespace in sorted(set(shown.split())):
        kubectl("-n", namespace, "delete", OURS, "--all", "--timeout=120s", timeout=130)
    with aside(kubectl):
        kubectl("delete", "-f", str(CRD), "--timeout=60s", timeout=70)
        yield
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRD))


def test_the_manuals_installation_from_its_first_command_to_its_last(bare: None, kubectl: Kubectl) -> None:
    def words(command: str) -> list[str]:
        return [word.replace("deploy/", f"{DEPLOY}/") for word in command.removeprefix("kubectl ").split()]

    def manual(command: str) -> str:
        """Words as the manual prints them, run where its files would lie."""
        return kubectl("-n", "paddle-system", *words(command), timeout=130).stdout

    manual("kubectl create -f deploy/v1/crd.yaml")
    header, *lines = manual("kubectl get crd").splitlines()
    assert cells(header) == ["NAME", "CREATED AT"]
    dates = dict(cells(line) for line in lines)
    for name in ("paddlejobs", "samplejobs", "samplesets"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", dates[f"{name}.batch.paddlepaddle.org"])

    manual("kubectl create -f deploy/v1/operator.yaml")
    manual("kubectl apply -f deploy/extensions/controllers.yaml -f deploy/extensions/serving.yaml")
    manual("kubectl -n paddle-system wait deployment --all --for=condition=Available --timeout=120s")
    header, *lines = manual("kubectl -n paddle-system get pods").splitlines()
    assert cells(header) == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert len(lines) == 6, "two of each"
    for name, ready, status, *_ in map(cells, lines):
        assert (name.startswith("paddle-paddlecloud-"), ready, status) == (True, "1/1", "Running")
    manual("kubectl apply -f deploy/v1/crd.yaml")  # again, as the other chapter has it

    (job,) = [each for each in yaml.safe_load_all(EXAMPLE.read_text()) if each]
    kubectl("-n", "paddle-system", "create", "-f", str(EXAMPLE))
    done = f"pdj/{job['metadata']['name']}"
    manual(f"kubectl -n paddle-system wait {done} --for=jsonpath={{.status.phase}}=Running --timeout=120s")
    assert cells(manual("kubectl get paddlejob -n paddle-system").splitlines()[1])[1:3] == ["Running", "PS"]
    leads = manual("kubectl -n paddle-system get pods -l paddlecloud.org/leads=paddlejob -o name").strip()
    assert "leads as paddlejob-controller" in manual(f"kubectl -n paddle-system logs {leads}")
    until(lambda: _phase(kubectl, done) == "Completed", timeout=300)
    header, line = manual("kubectl -n paddle-system get pdj").splitlines()
    assert cells(header) == ["NAME", "STATUS", "MODE", "PS", "WORKER", "AGE"]
    assert cells(line)[:5] == [job["metadata"]["name"], "Completed", "PS", "2/2", "0/2"]

    manual("kubectl delete -f deploy/extensions/controllers.yaml -f deploy/extensions/serving.yaml")
    last = words("kubectl delete -f deploy/v1/crd.yaml -f deploy/v1/operator.yaml --timeout=120s")
    deleted = kubectl("-n", "paddle-system", *last, check=False, timeout=130)
    # The namespace goes with all that is in it, of which kubectl may then say that it is not found: of nothing else.
    assert [line for line in deleted.stderr.splitlines() if not GONE_WITH_IT.fullmatch(line)] == []
    for kind in KINDS:
        assert f'"{kind.name}" deleted' in deleted.stdout

    def left() -> list[str]:
        names = kubectl("get", "namespaces,crd,clusterroles,clusterrolebindings", "-o", "name").stdout.splitlines()
        return [name for name in names if "paddle-system" in name or "paddlepaddle.org" in name]

    until(lambda: left() == [], timeout=120)


def _phase(kubectl: Kubectl, job: str) -> str:
    return kubectl("-n", "paddle-system", "get", job, "-o", "jsonpath={.status.phase}").stdout
