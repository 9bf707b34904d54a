"""What tests of the chart's release on a cluster share: Helm, who leads, which pods a job has, the audit log."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from harness import Kubectl, Target, need, until

from .harness.layout import Layout
from .operators import HELM, NAMESPACE, RELEASE

EXAMPLES = Path(__file__).parents[2] / "examples" / "manual"
WIDE_AND_DEEP = "registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1"


def helm(server: Target, *arguments: str) -> str:
    done = subprocess.run([HELM, *arguments], env=server.env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"helm {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def aside(kubectl: Kubectl) -> Iterator[None]:
    """The release stands still while other controllers of the same kinds work: two would take turns at one object."""
    of_all = ("deployment", "--all", "-n", NAMESPACE)
    kubectl("scale", *of_all, "--replicas=0")
    try:
        until(lambda: _replicas(kubectl) == [], timeout=90)
        yield
    finally:
        kubectl("scale", *of_all, "--replicas=2")
        kubectl("wait", *of_all, "--for=condition=Available", "--timeout=120s", timeout=130)


def _replicas(kubectl: Kubectl) -> list[str]:
    """Pods of the release's Deployments; those of `helm test`, which have no owner, stay when they have judged."""
    mine = ("-l", f"app.kubernetes.io/instance={RELEASE}")
    pods = json.loads(kubectl("get", "pods", "-n", NAMESPACE, *mine, "-o", "json").stdout)["items"]
    return [pod["metadata"]["name"] for pod in pods if pod["metadata"].get("ownerReferences")]


def leaders(kubectl: Kubectl) -> dict[str, str]:
    """Pods by what they lead; those that are going do not count."""
    shown = kubectl("get", "pods", "-n", NAMESPACE, "-l", "paddlecloud.org/leads", "-o", "json").stdout
    alive = [pod["metadata"] for pod in json.loads(shown)["items"] if not pod["metadata"].get("deletionTimestamp")]
    return {meta["labels"]["paddlecloud.org/leads"]: meta["name"] for meta in alive}


def identities(kubectl: Kubectl, name: str) -> dict[str, str]:
    shown = kubectl("get", "pods", "-l", f"paddlepaddle.org/job-name={name}", "-o", "json").stdout
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in json.loads(shown)["items"]}


def restarts(
    kubectl: Kubectl, selector: str = f"app.kubernetes.io/instance={RELEASE}", *, namespace: str = NAMESPACE
) -> dict[str, int]:
    """How often the containers of each pod began again; without a selector, the controllers'."""
    shown = kubectl("get", "pods", "-n", namespace, "-l", selector, "-o", "json").stdout
    return {
        pod["metadata"]["name"]: sum(state["restartCount"] for state in pod["status"].get("containerStatuses") or ())
        for pod in json.loads(shown)["items"]
    }


def as_it_is_here(file: str, name: str) -> str:
    """The manual's YAML for the namespace of a test, under another name."""
    text = (EXAMPLES / file).read_text().replace("wide-ande-deep", name)
    objects = [each for each in yaml.safe_load_all(text) if each]
    for each in objects:
        each["metadata"].pop("namespace", None)
    return yaml.safe_dump_all(objects)


def audit_log() -> Path:
    log = Layout.default().audit_log
    need("audit", have=log.exists(), hint="the fixture's own API server, started with an audit log")
    return log
