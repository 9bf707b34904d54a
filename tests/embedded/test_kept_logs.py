"""Logs of pods that are gone: kept while the object that made the pods exists, and no longer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness import Kubectl, eventually, pdc, until
from paddlecloud.kube.resource import CONFIGMAPS, PODS, Object
from paddlecloud.local.kubelet.streams import archive
from unit.local.kubelet.machine import TestMachine, running_machine

# The kubelet's part, with a ConfigMap in the place of a job


async def owner(machine: TestMachine, name: str = "job") -> Object:
    return await machine.client.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace="default")


async def live_and_go(machine: TestMachine, made_by: Object | None, script: str, name: str = "pod") -> None:
    """A pod from its creation to its removal."""
    metadata: Object = {"labels": {"rank": "0"}}
    if made_by is not None:
        ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": made_by["metadata"]["name"], "controller": True}
        metadata["ownerReferences"] = [{**ref, "uid": made_by["metadata"]["uid"]}]
    pod = await machine.run(script, name=name, metadata=metadata)
    await machine.phase(name, "Succeeded", "Failed")
    await machine.client.delete(PODS, name, namespace="default")
    await eventually(lambda: not machine.pod_dir(pod).exists())


async def kept_logs(machine: TestMachine, made_by: Object, **options: Any) -> list[str]:
    uid = made_by["metadata"]["uid"]
    logs = []
    for pod in machine.streams.kept_pods(uid):
        chunks = machine.streams.read_kept_log(uid, pod["metadata"]["uid"], **options)
        logs.append(b"".join([data async for data in chunks]).decode())
    return logs


async def test_every_life_of_a_pod_stays_readable(tmp_path: Path) -> None:
    async with running_machine(tmp_path, keep_logs_of=[CONFIGMAPS]) as machine:
        job = await owner(machine)
        await live_and_go(machine, job, "echo first; echo line two")
        await live_and_go(machine, job, "echo second; exit 3")
        assert await kept_logs(machine, job) == ["first\nline two\n", "second\n"]
        assert await kept_logs(machine, job, tail=1) == ["line two\n", "second\n"]
        pods = machine.streams.kept_pods(job["metadata"]["uid"])
        assert [(pod["metadata"]["name"], pod["metadata"]["labels"]) for pod in pods] == [("pod", {"rank": "0"})] * 2
        codes = {pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for pod in pods}
        assert codes == {0, 3}
        await machine.client.delete(CONFIGMAPS, "job", namespace="default")
        await machine.kubelet.archive.tidy()
        assert machine.streams.kept_pods(job["metadata"]["uid"]) == []
        assert list((tmp_path / "logs").iterdir()) == []


async def test_nothing_is_kept_for_nobody(tmp_path: Path) -> None:
    async with running_machine(tmp_path, keep_logs_of=[CONFIGMAPS]) as machine:
        gone = await owner(machine, "gone")
        await machine.client.delete(CONFIGMAPS, "gone", namespace="default")
        await live_and_go(machine, gone, "echo too late", name="late")
        await live_and_go(machine, None, "echo nobody's", name="orphan")
        assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("uid", ["../outside", "/{folder}/outside", "0b1f"])
async def test_an_owner_that_cannot_be_leads_to_no_folder(tmp_path: Path, uid: str) -> None:
    """Every pod's author writes its owner; what is kept must not lie where that says."""
    (tmp_path / "data").mkdir()
    written = uid.format(folder=tmp_path.relative_to("/"))
    async with running_machine(tmp_path / "data", keep_logs_of=[CONFIGMAPS]) as machine:
        await live_and_go(machine, {"metadata": {"name": "no/name", "uid": written}}, "echo forged")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert not (tmp_path / "data" / "outside").exists()
    assert not (tmp_path / "data" / "logs").exists()


async def test_what_is_kept_is_bounded_and_the_newest_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES_PER_OWNER", 300_000)
    async with running_machine(tmp_path, keep_logs_of=[CONFIGMAPS]) as machine:
        job = await owner(machine)
        for word in ("one", "two", "three"):
            await live_and_go(machine, job, f"yes {word} | head -c 150000; echo", name=word)
        logs = await kept_logs(machine, job)
        assert len(logs) < 3
        assert any(log.startswith("three") for log in logs)


# The user's part


def paddlejob(name: str, script: str, **spec: object) -> str:
    container = {"name": "paddle", "image": "busybox", "command": ["sh", "-c", script]}
    role = {"replicas": 2, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    return json.dumps(
        {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {"cleanPodPolicy": "Always", "withGloo": 0, "worker": role, **spec},
        }
    )


def test_the_logs_of_a_job_that_cleaned_up_are_there_until_it_is_deleted(
    kubectl: Kubectl, namespace: str, platform_data: Path
) -> None:
    kubectl("apply", "-f", "-", input=paddlejob("tidy", "echo rank $PADDLE_TRAINER_ID was here"))
    until(lambda: kubectl("get", "pdj", "tidy", "-o", "jsonpath={.status.phase}").stdout == "Completed", timeout=60)
    until(lambda: kubectl("get", "pods", "-o", "name").stdout == "", timeout=60)
    assert "not found" in kubectl("logs", "tidy-worker-0", check=False).stderr
    here = ("--kubeconfig", str(platform_data / "kubeconfig"), "-n", namespace)
    everybody = ["worker-0 | rank 0 was here", "worker-1 | rank 1 was here"]
    until(lambda: sorted(pdc(*here, "logs", "tidy", "--all-ranks", check=False).stdout.splitlines()) == everybody)
    assert pdc(*here, "logs", "tidy").stdout == "rank 0 was here\n"
    followed = pdc(*here, "logs", "-f", "tidy", "--rank", "1")
    assert (followed.returncode, followed.stdout) == (0, "rank 1 was here\n")
    kubectl("delete", "pdj", "tidy")
    assert pdc(*here, "logs", "tidy", check=False).returncode == 3


def test_the_runs_of_a_job_that_was_restarted_are_separated_by_a_note(
    kubectl: Kubectl, namespace: str, platform_data: Path
) -> None:
    kubectl("apply", "-f", "-", input=paddlejob("again", "echo try; exit 1", backoffLimit=1))
    until(lambda: kubectl("get", "pdj", "again", "-o", "jsonpath={.status.phase}").stdout == "Failed", timeout=60)
    here = ("--kubeconfig", str(platform_data / "kubeconfig"), "-n", namespace)
    until(lambda: pdc(*here, "logs", "again", check=False).stdout == "try\ntry\n", timeout=60)
    assert re.search("--- worker-[01]: restarted, run 2 ---", pdc(*here, "logs", "again").stderr)
    previous = pdc(*here, "logs", "again", "--previous", check=False)
    assert (previous.returncode, previous.stdout) == (3, "")
