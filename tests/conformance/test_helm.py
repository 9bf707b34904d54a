"""Real helm: a small chart is installed, upgraded, rolled back and taken away."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness import need
from paddlecloud.kube.resource import CONFIGMAPS, INGRESSES, SECRETS, SERVICEACCOUNTS, SERVICES

from .world import DEPLOYMENTS, ScratchNamespace

if TYPE_CHECKING:
    from harness import Completed, Target

CHART = Path(__file__).parent / "chart"

Helm = Callable[..., "Completed"]


@pytest.fixture
def helm(server: Target, here: ScratchNamespace, tmp_path: Path) -> Helm:
    """helm in the test's own namespace, with no memory of other runs. The test dependencies bring the binary."""
    beside = Path(sys.executable).with_name("helm")
    binary = str(beside) if beside.exists() else shutil.which("helm")
    need("helm", have=binary is not None, hint="make setup installs it with the test dependencies")
    homes = {name: str(tmp_path) for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}

    def run(*args: str, check: bool = True) -> Completed:
        done = subprocess.run(
            [str(binary), "--namespace", here.namespace, *args],
            capture_output=True, text=True, timeout=60, env={**server.env, **homes},
        )  # fmt: skip
        assert not check or done.returncode == 0, f"helm {args}: {done.stdout}{done.stderr}"
        return done

    return run


def greeting(here: ScratchNamespace) -> tuple[str, str]:
    data = here.get(CONFIGMAPS, "demo")["data"]
    return data["greeting"], data["revision"]


def env_of(here: ScratchNamespace) -> Any:
    return here.get(DEPLOYMENTS, "demo")["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"]


def test_the_life_of_a_release(here: ScratchNamespace, helm: Helm) -> None:
    installed = helm("install", "demo", str(CHART))
    assert "STATUS: deployed" in installed.stdout
    assert "hello from revision 1." in installed.stdout
    assert greeting(here) == ("hello", "1")
    assert here.get(CONFIGMAPS, "demo")["data"]["leases"] == "true"
    assert here.get(CONFIGMAPS, "demo-hook")["data"] == {"revision": "1"}
    assert here.get(DEPLOYMENTS, "demo")["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "Helm"}
    assert here.get(INGRESSES, "demo")["spec"]["rules"][0]["host"] == "demo.example.org"
    address = here.get(SERVICES, "demo")["spec"]["clusterIP"]

    helm("upgrade", "demo", str(CHART), "--set", "greeting=good day")
    assert (greeting(here), env_of(here)) == (("good day", "2"), "good day")
    assert here.get(CONFIGMAPS, "demo-hook")["data"] == {"revision": "2"}
    assert here.get(SERVICES, "demo")["spec"]["clusterIP"] == address

    helm("rollback", "demo", "1")
    assert (greeting(here)[0], env_of(here)) == ("hello", "hello")
    history = json.loads(helm("history", "demo", "-o", "json").stdout)
    assert [(entry["revision"], entry["status"]) for entry in history] == [
        (1, "superseded"),
        (2, "superseded"),
        (3, "deployed"),
    ]

    assert 'release "demo" uninstalled' in helm("uninstall", "demo", "--wait").stdout
    for resource in (DEPLOYMENTS, SERVICES, INGRESSES, SECRETS):
        assert here.names(resource) == []
    assert here.names(CONFIGMAPS) == ["demo-hook"]


def test_a_release_shows_what_it_is(here: ScratchNamespace, helm: Helm) -> None:
    helm("install", "demo", str(CHART), "--set", "hook=false", "--wait", "--timeout", "60s")
    (listed,) = json.loads(helm("list", "-o", "json").stdout)
    assert (listed["name"], listed["status"], listed["chart"]) == ("demo", "deployed", "greeter-0.1.0")
    assert json.loads(helm("get", "values", "demo", "-o", "json").stdout) == {"hook": False}
    assert "kind: Deployment" in helm("get", "manifest", "demo").stdout
    assert "STATUS: deployed" in helm("status", "demo").stdout
    again = helm("install", "demo", str(CHART), check=False)
    assert "cannot re-use a name that is still in use" in again.stderr


def test_what_others_own_is_not_taken(here: ScratchNamespace, helm: Helm) -> None:
    here.make(SERVICEACCOUNTS, "demo")
    refused = helm("install", "demo", str(CHART), check=False)
    assert refused.returncode == 1
    assert "invalid ownership metadata" in refused.stderr


def test_a_dry_run_on_the_server_leaves_nothing(here: ScratchNamespace, helm: Helm) -> None:
    assert "kind: Deployment" in helm("install", "demo", str(CHART), "--dry-run=server").stdout
    assert here.names(DEPLOYMENTS) == here.names(SECRETS) == []


def test_a_failed_upgrade_can_go_back_by_itself(here: ScratchNamespace, helm: Helm) -> None:
    helm("install", "demo", str(CHART))
    failed = helm(
        "upgrade", "demo", str(CHART), "--set", "replicas=-1", "--set", "greeting=never", "--atomic",
        "--timeout", "60s", check=False,
    )  # fmt: skip
    assert failed.returncode == 1
    assert "spec.replicas" in failed.stderr
    assert greeting(here)[0] == "hello"
