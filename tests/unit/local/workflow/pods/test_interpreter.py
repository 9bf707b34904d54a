"""Steps of other users start the executor, wherever the platform lies."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from paddlecloud.kube.resource import Object
from paddlecloud.local.volumes.drivers import MountRequest
from paddlecloud.local.volumes.errors import VolumeError
from paddlecloud.local.workflow.artifacts.driver import ArtifactDriver
from paddlecloud.local.workflow.artifacts.repository import Repository
from paddlecloud.local.workflow.pods import interpreter
from unit.local.workflow.simulation import Simulation, workflow

SPEC = """
entrypoint: main
securityContext: %s
templates:
- name: main
  inputs: {artifacts: [{name: in, path: /in, raw: {data: x}}]}
  %s
  outputs: {parameters: [{name: out, valueFrom: {path: /out}}]}
"""
CONTAINER = "container: {image: busybox, command: [make]}"


def pod_of(user: str, template: str = CONTAINER) -> Object:
    (pod,) = Simulation(workflow(SPEC % (user, template))).step()
    return pod


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "is_reachable", lambda: False)


def test_a_step_of_another_user_gets_the_interpreter_as_volumes(closed: None) -> None:
    pod = pod_of("{runAsUser: 1234}")
    volumes = {volume["name"]: volume["csi"] for volume in pod["spec"]["volumes"] if "csi" in volume}
    for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
        mounted = {mount["name"]: mount for mount in container["volumeMounts"]}
        assert container["command"][0].startswith("/argo/python/")
        for name in ("argo-python", "argo-platform", "argo-packages"):
            assert mounted[name]["readOnly"]
            assert volumes[name]["readOnly"]


@pytest.mark.parametrize("user", ["{runAsUser: 0}", "{}"])
def test_a_step_of_root_uses_it_in_place(closed: None, user: str) -> None:
    (container,) = pod_of(user)["spec"]["containers"]
    assert not container["command"][0].startswith("/argo/")
    assert [mount["name"] for mount in container["volumeMounts"]] == ["argo-outputs", "input-artifacts"]


@pytest.mark.parametrize("user", ["{runAsUser: 1234}", "{runAsUser: 0}", "{}"])
def test_every_step_gets_it_as_volumes_where_the_platform_lies_below_the_tmp_that_pods_do_not_see(
    monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    monkeypatch.setattr(interpreter, "is_hidden", lambda: True)
    (container,) = pod_of(user)["spec"]["containers"]
    assert container["command"][0].startswith("/argo/python/")
    assert {"argo-python", "argo-platform"} <= {mount["name"] for mount in container["volumeMounts"]}


def test_the_user_of_a_container_counts_before_that_of_the_workflow(closed: None) -> None:
    own = "container: {image: busybox, command: [make], securityContext: {runAsUser: 0}}"
    assert not pod_of("{runAsUser: 1234}", own)["spec"]["containers"][0]["command"][0].startswith("/argo/")


@pytest.mark.parametrize("folder", ["python", "packages", "platform"])
def test_nobody_mounts_the_interpreter_for_writing(tmp_path: Path, folder: str) -> None:
    driver = ArtifactDriver(Repository(tmp_path))
    pod = {"metadata": {"namespace": "n", "uid": "u"}}
    given = {"handle": "", "target": tmp_path, "pod": pod, "attributes": {"folder": folder}}
    with pytest.raises(VolumeError, match="readOnly"):
        asyncio.run(driver.publish(MountRequest(**given)))  # type: ignore[arg-type]
    assert asyncio.run(driver.publish(MountRequest(**given, readonly=True))) == interpreter.FOLDERS[folder]  # type: ignore[arg-type]


def test_the_executor_starts_from_folders_that_lie_elsewhere(tmp_path: Path, closed: None) -> None:
    """As in the pod: the same folders under other names."""
    command = pod_of("{runAsUser: 1234}")["spec"]["containers"][0]["command"]
    for name in ("python", "platform", "packages"):
        (tmp_path / name).symlink_to(interpreter.FOLDERS[name])
    words = [each.replace("/argo/", f"{tmp_path}/") for each in command]
    ran = subprocess.run(
        [*words[:-2], "run", "true"], env={**os.environ, "ARGO_TEMPLATE": "{}"}, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
