"""Whatever the order of events is, and whichever writes a crash loses, a workflow ends as it would have without."""

from __future__ import annotations

import random
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.names import pod_name
from unit.local.workflow.simulation import OVER, Simulation, workflow

# Without `failFast: false` it would depend on the order of events whether E begins: B may have failed by then.
SPEC = """
entrypoint: main
onExit: say
templates:
- name: main
  dag:
    failFast: false
    tasks:
    - {name: A, template: say}
    - {name: B, template: say, dependencies: [A], withItems: [1, 2]}
    - {name: C, template: groups, dependencies: [A]}
    - {name: D, template: say, depends: "B && C"}
    - {name: E, template: say, depends: "C.Failed || C.Succeeded"}
- name: groups
  steps:
  - - {name: first, template: say}
    - {name: second, template: say}
  - - {name: third, template: once}
- {name: say, retryStrategy: {limit: 1, retryPolicy: Always}, container: {image: busybox, command: [echo]}}
- {name: once, container: {image: busybox, command: [echo]}}
"""
PASSES = 400


class UnreliableSimulation(Simulation):
    """A crash loses the status of a pass and some of its other writes. Whether a pod fails depends on its name alone,
    not on the order of events."""

    def __init__(self, seed: int, failures: float) -> None:
        super().__init__(workflow(SPEC), lambda pod: self._code(pod["metadata"]["name"]))
        self.dice = random.Random(seed)
        self._seed, self._failures = seed, failures

    def _code(self, pod: str) -> int:
        return int(random.Random(f"{self._seed} {pod}").random() < self._failures)

    def active_pods(self) -> list[Object]:
        return [
            pod for pod in self.pods.values() if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]

    def step_or_crash(self, crashes: float) -> None:
        plan = self.decided()
        if self.dice.random() < crashes:
            plan = Plan(create=self._some(plan.create), delete=self._some(plan.delete))
        self.carry_out(plan)

    def _some(self, writes: Iterable[Object]) -> list[Object]:
        return [each for each in writes if self.dice.random() < 0.7]

    def let_pods_go_on(self) -> None:
        waiting = self.active_pods()
        self.dice.shuffle(waiting)
        for pod in waiting:
            if self.dice.random() < 0.3:
                self.finish(pod)
            elif self.dice.random() < 0.5:
                pod["spec"]["nodeName"], pod["status"] = "node", {"phase": "Running"}


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3, 0.7]))
def test_any_order_of_events_and_crashes_ends_as_without_them(seed: int, failures: float) -> None:
    straight = UnreliableSimulation(seed, failures).run()
    run = UnreliableSimulation(seed, failures)
    for _ in range(PASSES):
        run.step_or_crash(0.3)
        run.let_pods_go_on()
        if run.status.get("phase") in OVER:
            break
    assert (run.status["phase"], run.status.get("message")) == (
        straight.status["phase"],
        straight.status.get("message"),
    )
    assert run.phases() == straight.phases()
    assert sorted(run.created) == sorted(straight.created)
    assert len(run.created) == len({*run.created}), "no pod is created twice"


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3]), st.sampled_from(["Stop", "Terminate"]), st.integers(0, 30))
def test_a_stop_at_any_moment_ends_every_pod_and_begins_none(
    seed: int, failures: float, strategy: str, moment: int
) -> None:
    run = UnreliableSimulation(seed, failures)
    begun: set[str] = set()
    for number in range(PASSES):
        if number == moment:
            run.workflow["spec"]["shutdown"] = strategy
            begun = {*run.created}
        run.step_or_crash(0.3)
        run.let_pods_go_on()
        if run.status.get("phase") in OVER and number >= moment:
            break
    run.step()
    assert run.status["phase"] in OVER
    assert run.active_pods() == []
    assert all(node["phase"] not in ("Pending", "Running") for node in run.nodes.values())
    assert len(run.created) == len({*run.created}), "no pod is created twice"
    handler = {pod_name("wf", f"wf.onExit({attempt})", "say") for attempt in range(2)} if strategy == "Stop" else set()
    assert {*run.created} - begun <= handler
