"""Workflows that somebody stops, or whose time is over: what ends, what goes on, and what the messages say."""

from __future__ import annotations

import pytest

from unit.local.workflow.simulation import Simulation, workflow

TEMPLATES = """
templates:
- name: main
  dag:
    tasks:
    - {name: pod, template: pod}
    - {name: retried, template: retried}
    - {name: suspended, template: suspended}
    - {name: http, template: http}
    - {name: late, template: pod, depends: "pod.Failed || pod.Succeeded"}
- {name: pod, container: {image: busybox, command: [sleep]}}
- {name: retried, retryStrategy: {limit: 3}, container: {image: busybox, command: [sleep]}}
- {name: suspended, suspend: {}}
- {name: http, http: {url: "http://nowhere"}}
"""
STOPPED = "Stopped with strategy 'Stop'"


def running(spec: str) -> Simulation:
    """With pods that run and do not end by themselves."""
    run = Simulation(workflow(spec))
    for pod in run.step():
        pod["status"] = {"phase": "Running"}
    run.step()
    return run


def messages(run: Simulation) -> dict[str, str | None]:
    assert {node["phase"] for node in run.nodes.values()} == {"Failed"}
    return {name: node.get("message") for name, node in run.nodes.items()}


def test_the_nodes_of_a_stopped_workflow_have_the_messages_of_argo() -> None:
    run = running(f"entrypoint: main\n{TEMPLATES}")
    run.workflow["spec"]["shutdown"] = "Stop"
    run.run()
    assert (run.status["phase"], run.status["message"]) == ("Failed", STOPPED)
    assert messages(run) == {
        "wf": None,
        "pod": "workflow shutdown with strategy:  Stop",
        "retried": STOPPED,
        "retried(0)": "workflow shutdown with strategy:  Stop",
        "suspended": STOPPED,
        "http": STOPPED,
        "late": "workflow shutdown with strategy: Stop",
    }
    assert run.pods == {}


def test_the_nodes_of_a_workflow_at_its_deadline_have_the_messages_of_argo() -> None:
    run = running(f"entrypoint: main\nactiveDeadlineSeconds: 60\n{TEMPLATES}")
    assert run.plan.after == pytest.approx(59)
    run.now += 60
    run.run()
    exceeded = "Step exceeded its deadline"
    assert (run.status["phase"], run.status.get("message")) == ("Failed", None), "as that of the entrypoint's node"
    assert messages(run) == {
        "wf": None,
        "pod": exceeded,
        "retried": "retry exceeded workflow deadline 2026-09-21 14:14:20 +0000 UTC",
        "retried(0)": exceeded,
        "suspended": exceeded,
        "http": exceeded,
        "late": exceeded,
    }
    assert run.pods == {}


@pytest.mark.parametrize(
    ("strategy", "handler", "phase"), [("Stop", "Running", "Running"), ("Terminate", "Failed", "Succeeded")]
)
def test_an_exit_handler_goes_on_when_its_workflow_is_stopped_and_ends_when_it_is_terminated(
    strategy: str, handler: str, phase: str
) -> None:
    run = Simulation(workflow(f"entrypoint: pod\nonExit: retried\n{TEMPLATES}"))
    for pod in run.step():
        run.finish(pod)
    for pod in run.step():
        pod["status"] = {"phase": "Running"}
    run.step()
    run.workflow["spec"]["shutdown"] = strategy
    run.step()
    run.step()
    assert run.phases() == {"wf": "Succeeded", "wf.onExit": handler, "wf.onExit(0)": handler}
    assert run.status["phase"] == phase


def test_given_a_pod_whose_status_was_lost_then_a_stop_ends_it_and_creates_it_not_again() -> None:
    """Somebody stops the workflow while its first pods are created: the write of that pass meets a conflict."""
    run = Simulation(workflow(f"entrypoint: pod\n{TEMPLATES}"))
    run.step()
    run.workflow["status"] = {}
    run.workflow["spec"]["shutdown"] = "Stop"
    run.run()
    assert (run.status["phase"], run.status["message"]) == ("Failed", STOPPED)
    assert (run.pods, len(run.created)) == ({}, 1)
