"""The events of pods through the real API: those of Kubernetes, and no warning without a cause."""

from __future__ import annotations

from harness import eventually
from paddlecloud.api import crd
from paddlecloud.api.paddlejob import DECLARATION
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import (
    CONFIGMAPS,
    CRDS,
    PADDLEJOBS,
    PODS,
    Object,
    owner_reference,
)
from paddlecloud.local.apiserver.table.pods import summarize
from unit.local.kubelet.machine import TestMachine, is_ready, shell_pod, state_of, waiting_reason

WELL = [
    ("Normal", "Pulled", 'Container image "busybox" already present on machine'),
    ("Normal", "Created", "Created container: main"),
    ("Normal", "Started", "Started container main"),
]


async def test_a_healthy_pod_has_the_events_of_kubernetes_and_no_warning(machine: TestMachine) -> None:
    await machine.run("sleep 600", name="well")
    await machine.until("well", is_ready)
    await eventually(lambda: machine.events_of("well"), WELL)
    await machine.kubelet.stop()
    await machine.start_kubelet()
    await machine.client.delete(PODS, "well", namespace="default", grace_period=1)
    killing = ("Normal", "Killing", "Stopping container main")
    await eventually(
        lambda: machine.events_of("well"), [*WELL, killing], what="a restarted kubelet starts nothing again"
    )


async def _made(machine: TestMachine, job: Object) -> Object | None:
    try:
        return await machine.client.create(PADDLEJOBS, job, namespace="default")
    except NotFound:
        return None


async def test_the_start_barrier_of_a_job_is_no_warning(machine: TestMachine) -> None:
    """Until its ConfigMap is there a pod of a PaddleJob is being created; the ConfigMap of anybody else is missing."""
    await machine.client.create(CRDS, crd.definition(DECLARATION))
    containers = [{"name": "main", "image": "busybox"}]
    spec = {"worker": {"replicas": 1, "template": {"spec": {"containers": containers}}}}
    job = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": "hi"}, "spec": spec}
    made = await eventually(lambda: _made(machine, job), what="the kind is served")
    env = [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "hi", "key": "k"}}}]
    member = shell_pod("true", name="hi-worker-0", container={"env": env})
    member["metadata"]["ownerReferences"] = [owner_reference(made)]
    await machine.create(member)
    pod = await machine.until("hi-worker-0", waiting_reason)
    assert state_of(pod)["state"]["waiting"] == {
        "reason": "ContainerCreating",
        "message": "waiting until every pod of job hi has an address",
    }
    stranger = shell_pod("true", name="stranger", container={"env": env})
    await machine.create(stranger)
    missing = ("Warning", "Failed", 'container main: configmap "hi" not found')
    await eventually(lambda: machine.events_of("stranger"), lambda shown: missing in shown)
    await machine.client.create(CONFIGMAPS, {"metadata": {"name": "hi"}, "data": {"k": "it"}}, namespace="default")
    await machine.phase("hi-worker-0", "Succeeded")
    await eventually(lambda: machine.events_of("hi-worker-0"), WELL)


async def test_a_key_that_a_job_does_not_write_is_missing_and_no_barrier(machine: TestMachine) -> None:
    made = await machine.client.create(
        CONFIGMAPS, {"metadata": {"name": "hi"}, "data": {"k": "it"}}, namespace="default"
    )
    owner = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "name": "hi",
        "uid": made["metadata"]["uid"],  # of an object that is there: pods of an owner that is gone go as well
        "controller": True,
    }
    for name, key in (("hi-worker-0", "PADDLE_TRAINERS_NMU"), ("hi-worker-1", "PADDLE_GENERATION_7")):
        env = [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "hi", "key": key}}}]
        member = shell_pod("true", name=name, container={"env": env})
        member["metadata"]["ownerReferences"] = [owner]
        await machine.create(member)
    pod = await machine.until("hi-worker-0", waiting_reason)
    assert state_of(pod)["state"]["waiting"] == {
        "reason": "CreateContainerConfigError",
        "message": "couldn't find key PADDLE_TRAINERS_NMU in ConfigMap default/hi",
    }
    pod = await machine.until("hi-worker-1", waiting_reason)
    assert state_of(pod)["state"]["waiting"]["message"] == "waiting until every pod of job hi has an address"


async def test_a_pod_that_its_controller_ends_on_purpose_has_no_deadline_in_its_story(machine: TestMachine) -> None:
    await machine.run("sleep 600", name="server", terminationGracePeriodSeconds=1)
    await machine.until("server", is_ready)
    change = {
        "metadata": {"annotations": {"paddlepaddle.org/ended": "on purpose: its job is Failed"}},
        "spec": {"activeDeadlineSeconds": 1},
    }
    await machine.client.patch(PODS, "server", change, namespace="default")
    pod = await machine.phase("server", "Failed")
    assert (pod["status"]["reason"], pod["status"]["message"]) == ("Ended", "on purpose: its job is Failed")
    assert state_of(pod)["state"]["terminated"]["exitCode"] == 143
    assert summarize(pod).reason == "Ended", "the STATUS that kubectl prints"
    ended = ("Normal", "Ended", "on purpose: its job is Failed")
    await eventually(lambda: machine.events_of("server"), lambda shown: ended in shown)
    assert {kind for kind, _, _ in await machine.events_of("server")} == {"Normal"}


async def test_troubles_become_warnings(machine: TestMachine) -> None:
    await machine.run("exit 1", name="ill", policy="Always")
    shown = await eventually(
        lambda: machine.events_of("ill"), lambda shown: any(kind == "Warning" for kind, _, _ in shown)
    )
    (warning,) = [entry for entry in shown if entry[0] == "Warning"]
    assert warning[1] == "BackOff"
    assert "restarting failed container=main" in warning[2]
