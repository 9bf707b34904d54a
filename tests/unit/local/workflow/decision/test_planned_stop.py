"""A planned stop of the platform ends the pods of steps: these run again, and nothing else does."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from paddlecloud.kube.pods import NODE_SHUTDOWN
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.pod_state import SHUTDOWN_REASON
from unit.local.workflow.simulation import Simulation, workflow

SAY = "entrypoint: a\ntemplates: [{name: a, container: {image: busybox, command: [say]}}]"
SET = """
entrypoint: a
templates:
- name: a
  containerSet: {containers: [{name: x, image: b, command: [c]}, {name: y, image: b, command: [c], dependencies: [x]}]}
"""
RETRIED = (
    "entrypoint: a\ntemplates: [{name: a, retryStrategy: {limit: 1}, container: {image: busybox, command: [say]}}]"
)


def run(pod: Object) -> None:
    pod["spec"]["nodeName"] = "node"
    names = [each["name"] for each in pod["spec"]["containers"]]
    pod["status"] = {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "containerStatuses": [{"name": each, "state": {"running": {}}} for each in names],
    }


def stop_platform(pod: Object, **by_itself: Any) -> None:
    """As the kubelet reports it after the next start; `by_itself` are ends of containers before the stop."""
    ended = {"exitCode": 137, "reason": SHUTDOWN_REASON, "message": "the platform was stopped while the container ran"}
    for each in pod["status"]["containerStatuses"]:
        each["state"] = {"terminated": by_itself.get(each["name"], ended)}
    pod["status"] |= {
        "phase": "Failed",
        "reason": NODE_SHUTDOWN,
        "message": "the platform was stopped while the pod ran",
    }


def go_on(simulation: Simulation) -> None:
    simulation.run()
    simulation.run()  # the second begins when the pod is gone, as its watch event does


def begun(spec: str) -> tuple[Simulation, Object]:
    simulation = Simulation(workflow(spec))
    (pod,) = simulation.step()
    run(pod)
    simulation.step()
    return simulation, pod


@pytest.mark.parametrize("spec", [SAY, SET, RETRIED], ids=["container", "container set", "retried step"])
def test_a_step_that_ran_runs_again_once_and_no_attempt_is_spent(spec: str) -> None:
    simulation, pod = begun(spec)
    stop_platform(pod)
    go_on(simulation)
    assert simulation.status["phase"] == "Succeeded"
    assert simulation.created == [pod["metadata"]["name"]] * 2
    assert {node["phase"] for node in simulation.nodes.values() if node["type"] != "Container"} == {"Succeeded"}


def test_all_containers_of_a_set_begin_again() -> None:
    simulation, pod = begun(SET)
    stop_platform(pod, x={"exitCode": 0, "reason": "Completed"})
    simulation.step()
    assert simulation.phases() == {"wf": "Pending", "x": "Pending", "y": "Pending"}


def test_given_a_crash_between_two_writes_then_the_step_still_runs_again() -> None:
    simulation, pod = begun(SAY)
    stop_platform(pod)
    simulation.step()
    assert [node["phase"] for node in simulation.nodes.values()] == ["Pending"], "stored before its pod is deleted"
    assert simulation.pods, "and only then deleted"
    stored = copy.deepcopy(simulation.workflow)
    simulation.step()
    assert not simulation.pods
    simulation.workflow = stored  # what that pass wrote is lost
    go_on(simulation)
    assert (simulation.status["phase"], len(simulation.created)) == ("Succeeded", 2)


DAEMON = """
entrypoint: main
templates:
- name: main
  steps:
  - - {name: server, template: server}
  - - {name: client, template: client, arguments: {parameters: [{name: ip, value: "{{steps.server.ip}}"}]}}
- {name: server, daemon: true, container: {image: busybox, command: [serve]}}
- {name: client, inputs: {parameters: [{name: ip}]}, container: {image: b, command: [ask, "{{inputs.parameters.ip}}"]}}
"""


@pytest.mark.parametrize("reported_first", ["server", "client"])
def test_beside_a_daemon_nothing_is_repeated_whichever_end_is_reported_first(reported_first: str) -> None:
    simulation = Simulation(workflow(DAEMON))
    (server,) = simulation.step()
    run(server)
    server["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    simulation.step()
    client = next(pod for pod in simulation.pods.values() if pod is not server)
    run(client)
    simulation.step()
    pods = [server, client] if reported_first == "server" else [client, server]
    for pod in pods:
        stop_platform(pod)
        simulation.step()
    go_on(simulation)
    assert (simulation.status["phase"], len(simulation.created)) == ("Failed", 2)
    assert {each["phase"] for each in simulation.nodes.values()} <= {"Failed", "Succeeded"}


ENDED: dict[str, tuple[str, dict[str, Any]]] = {
    "its program had failed by itself": (SAY, {"main": {"exitCode": 1, "reason": "Error"}}),
    "it creates an object": (
        "entrypoint: a\ntemplates: [{name: a, resource: {action: create, manifest: '{kind: Job}'}}]",
        {},
    ),
}


@pytest.mark.parametrize("case", ENDED)
def test_what_may_have_had_its_effect_is_not_repeated(case: str) -> None:
    spec, ends = ENDED[case]
    simulation, pod = begun(spec)
    stop_platform(pod, **ends)
    go_on(simulation)
    assert (simulation.status["phase"], len(simulation.created)) == ("Failed", 1)


def test_a_pod_that_failed_for_any_other_reason_is_not_repeated() -> None:
    simulation, pod = begun(SAY)
    stop_platform(pod)
    pod["status"]["reason"] = "Evicted"
    go_on(simulation)
    assert (simulation.status["phase"], len(simulation.created)) == ("Failed", 1)


def test_a_workflow_that_was_stopped_itself_begins_nothing_again() -> None:
    simulation, pod = begun(SAY)
    stop_platform(pod)
    simulation.workflow["spec"]["shutdown"] = "Terminate"
    go_on(simulation)
    assert (simulation.status["phase"], len(simulation.created)) == ("Failed", 1)
