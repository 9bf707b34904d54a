"""What pods get of the machine: nodes that share it, GPUs, and a machine without namespaces."""

from __future__ import annotations

import asyncio
from pathlib import Path

from harness import PATIENCE
from paddlecloud.kube.resource import (
    EVENTS,
    LEASES,
    NODES,
    PODS,
    Object,
)
from paddlecloud.local.kubelet.node.node import NodeConfig
from unit.local.kubelet.machine import NODE, is_ready, running_machine, shell_pod


async def test_two_nodes_share_the_machine(tmp_path: Path) -> None:
    nodes = [NodeConfig(NODE), NodeConfig("node-2", labels={"zone": "b"}, capacity={"cpu": "1"})]
    async with running_machine(tmp_path, nodes=nodes) as machine:
        second = shell_pod("echo there", name="second")
        second["spec"]["nodeName"] = "node-2"
        await machine.run("echo here", name="first")
        await machine.create(second)
        await machine.phase("first", "Succeeded")
        await machine.phase("second", "Succeeded")
        node = await machine.client.get(NODES, "node-2")
        assert node["metadata"]["labels"]["zone"] == "b"
        assert node["status"]["capacity"]["cpu"] == "1"
        ready = {c["type"]: c["status"] for c in node["status"]["conditions"]}
        assert ready["Ready"] == "True"
        lease = await machine.client.get(LEASES, "node-2", "kube-node-lease")
        assert lease["spec"]["holderIdentity"] == "node-2"


async def test_a_pod_sees_the_gpus_it_asked_for(tmp_path: Path) -> None:
    async with running_machine(tmp_path, gpus=["0", "1"]) as machine:
        limits = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
        script = 'echo "gpus=$CUDA_VISIBLE_DEVICES"'
        await machine.run(f"{script}; sleep 600", name="one", container=limits)
        await machine.printed("one", "gpus=0")
        await machine.run(script, name="two", container=limits)
        await machine.run(script, name="none")
        await machine.phase("two", "Succeeded")
        await machine.phase("none", "Succeeded")
        assert await machine.log("two") == "gpus=1\n"
        assert await machine.log("none") == "gpus=\n"
        node = await machine.client.get(NODES, NODE)
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "2"


async def test_a_pod_that_finds_no_gpu_free_starts_when_one_is(tmp_path: Path) -> None:
    """The scheduler sends none such; a pod that names its node comes past it."""
    async with running_machine(tmp_path, gpus=["0"]) as machine:
        limits = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
        await machine.run("exec sleep 600", name="one", container=limits)
        await machine.until("one", is_ready)
        await machine.run('echo "gpus=$CUDA_VISIBLE_DEVICES"', name="two", container=limits)
        shown = "1 GPUs wanted, 0 of 1 free on this machine"
        await machine.until("two", lambda pod: shown in str(pod.get("status")))
        await machine.client.delete(PODS, "one", namespace="default", grace_period=1)
        await machine.phase("two", "Succeeded")
        assert await machine.log("two") == "gpus=0\n"


async def test_a_node_that_declares_gpus_runs_its_pods_on_the_cpu_of_a_machine_that_has_some(tmp_path: Path) -> None:
    """Whatever it declares, beside the machine's own node the GPUs are counted once."""
    async with running_machine(tmp_path, gpus=["0"]) as machine:
        for name, capacity in (("declares", {"nvidia.com/gpu": "4"}), ("says-nothing", {})):
            await machine.kubelet.add_node(NodeConfig(name, capacity=capacity, declared=True))
        has = {name: (await machine.client.get(NODES, name))["status"]["allocatable"].get("nvidia.com/gpu")
               for name in (NODE, "declares", "says-nothing")}  # fmt: skip
        assert has == {NODE: "1", "declares": "4", "says-nothing": None}
        limits = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
        await machine.run('echo "gpus=$CUDA_VISIBLE_DEVICES"', name="cpu", container=limits, nodeName="declares")
        await machine.phase("cpu", "Succeeded")
        assert await machine.log("cpu") == "gpus=\n"


async def test_without_namespaces_home_and_scratch_are_the_containers_own_and_not_the_machines(tmp_path: Path) -> None:
    show = 'echo "$HOME $(stat -c %a "$HOME") $TMPDIR $LOGS $ELSEWHERE"'
    env = [
        {"name": "LOGS", "value": "/tmp/paddle-log/default/pod"},
        {"name": "ELSEWHERE", "value": "/tmpfs:http://x/tmp/y"},
    ]
    async with running_machine(tmp_path, forbid="root,user") as machine:
        created = await machine.run(
            f"{show}; exec sleep 600", container={"env": env}, automountServiceAccountToken=False
        )
        own = machine.pod_dir(created) / "private" / "main" / "tmp"
        expected = f"{own}/home 700 {own} {own}/paddle-log/default/pod /tmpfs:http://x/tmp/y"
        await machine.printed("pod", expected)
        assert await machine.exec("pod", "sh", "-c", show) == (0, f"{expected}\n"), "and for programs beside it"


async def test_a_machine_without_namespaces_runs_what_it_can_and_says_what_it_lacks(tmp_path: Path) -> None:
    async with running_machine(tmp_path, forbid="root,user") as machine:
        await machine.run("echo ran", automountServiceAccountToken=False)
        await machine.phase("pod", "Succeeded")
        assert await machine.log("pod") == "ran\n"

        async def shown() -> Object:
            async for event in machine.client.watch(EVENTS, "default"):
                if event.object["reason"] == "SandboxDegraded":
                    return event.object
            raise AssertionError("the watch ended")

        assert "no mount namespaces" in (await asyncio.wait_for(shown(), PATIENCE))["message"]
