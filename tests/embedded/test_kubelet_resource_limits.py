"""Pods that take more than they may: of memory, of disk, of processes, of time, of the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import eventually
from paddlecloud.kube.resource import NODES, Object
from paddlecloud.local.kubelet.node import disk, process_counts
from paddlecloud.local.kubelet.node.limits import ANNOTATION
from paddlecloud.local.kubelet.shim import processes, wire
from unit.local.kubelet.machine import NODE, TestMachine, running_machine, shell_pod

FILL = "head -c 3000000 /dev/zero > {path}; sync; echo up; sleep 600"
ONE_MIB = {"resources": {"limits": {"ephemeral-storage": "1Mi"}}}
VOLUME = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}


@pytest.mark.parametrize(
    ("script", "container", "volumes", "message"),
    [
        (
            FILL.format(path="/v/big"),
            VOLUME,
            [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}],
            'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ',
        ),
        (
            FILL.format(path="/v/big"),
            {**VOLUME, **ONE_MIB},
            [{"name": "v", "emptyDir": {}}],
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
        ),
        (
            FILL.format(path="/tmp/big"),
            ONE_MIB,
            [],
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
        ),
        (
            "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo up; sleep 600",
            ONE_MIB,
            [],
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
        ),
    ],
    ids=["volume", "volume of a limited pod", "own files", "log"],
)
async def test_a_pod_over_its_disk_limit_is_evicted(
    machine: TestMachine, script: str, container: Object, volumes: list[Any], message: str
) -> None:
    await machine.run(script, container=container, volumes=volumes, terminationGracePeriodSeconds=600)
    await machine.printed("pod", "up")
    worker = machine.kubelet.worker("default", "pod")
    assert worker is not None
    worker.evict(disk.over_limit(worker.pod, worker.paths))
    pod = await machine.phase("pod", "Failed")
    assert (pod["status"]["reason"], pod["status"]["message"]) == ("Evicted", message)


async def test_one_container_over_its_disk_limit_is_named(machine: TestMachine) -> None:
    roomy: Object = {"name": "roomy", "image": "busybox", "command": ["sleep", "600"]}
    roomy["resources"] = {"limits": {"ephemeral-storage": "1Gi"}}
    pod = shell_pod(FILL.format(path="/tmp/big"), container=ONE_MIB)
    pod["spec"]["containers"].append(roomy)
    await machine.create(pod)
    await machine.printed("pod", "up", container="main")
    worker = machine.kubelet.worker("default", "pod")
    assert worker is not None
    assert disk.has_limits(worker.pod)
    expected = 'Container main exceeded its local ephemeral storage limit "1Mi". '
    assert disk.over_limit(worker.pod, worker.paths) == expected


async def test_a_fork_bomb_is_evicted_with_all_its_processes(tmp_path: Path) -> None:
    """Nothing here holds it to a number; what the machine notices is that the whole has grown."""
    async with running_machine(tmp_path, pids_limit=100, forbid="cgroups,user") as machine:
        fork = "trap '' TERM; while :; do setsid sh -c 'exec sleep 600' & done"
        created = await machine.run(fork, terminationGracePeriodSeconds=600)
        pod = await machine.phase("pod", "Failed")
        assert pod["status"]["reason"] == "Evicted"
        assert "a pod may have 100 on this machine" in pod["status"]["message"]
        await eventually(lambda: not any(processes.strays(created["metadata"]["uid"])))


async def test_processes_of_the_machine_are_not_counted_as_the_pods(machine: TestMachine) -> None:
    await machine.run("echo up; exec sleep 600")
    await machine.printed("pod", "up")
    worker = machine.kubelet.worker("default", "pod")
    assert worker is not None
    assert worker.shim is not None
    assert process_counts.pod_tasks(worker.shim) == 1


async def test_the_node_says_which_limits_are_in_force(tmp_path: Path) -> None:
    async with running_machine(tmp_path, forbid="cgroups") as machine:
        node = await machine.client.get(NODES, NODE)
        assert node["metadata"]["annotations"][ANNOTATION] == (
            "memory: watched, cpu: not enforced, pids: watched (cgroups are switched off)"
        )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("megabytes", [50, pytest.param(1000, marks=pytest.mark.soak)])
async def test_a_flood_of_output_neither_fills_the_disk_nor_stops_the_pod(machine: TestMachine, megabytes: int) -> None:
    """Through a log of 5 × 10 MB: the oldest is dropped, the last line is there, the pod ends as it would."""
    flood = f"yes 0123456789012345678901234567890123456789 | head -c {megabytes}000000; echo; echo the end"
    created = await machine.run(flood)
    await machine.until("pod", lambda pod: pod["status"].get("phase") == "Succeeded", deadline=30 + megabytes / 4)
    assert await machine.log("pod", tail=1) == "the end\n"
    logs = machine.pod_dir(created) / "logs" / "main"
    kept = sum(file.stat().st_size for file in logs.iterdir())
    spec = wire.ContainerSpec._field_defaults
    assert kept <= spec["log_max_bytes"] * spec["log_max_files"]
