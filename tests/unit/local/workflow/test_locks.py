"""Mutexes and semaphores over several workflows of a namespace: never too many holders, never a lock that is left."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.kube.cache import Cache
from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.decision.locks import LockRequest, holdings
from paddlecloud.local.workflow.lock_table import INDEX, LockTable, index, may_wake_others
from unit.local.workflow.simulation import OVER, Simulation, workflow
from unit.local.workflow.validation.test_validation import judged, spec

TEMPLATE = """
    entrypoint: main
    templates:
    - name: main
      synchronization: LOCK
      container: {image: busybox, command: ["true"]}
"""
WHOLE = """
    entrypoint: main
    synchronization: LOCK
    templates: [{name: main, container: {image: busybox, command: ["true"]}}]
"""
INSIDE = """
    entrypoint: main
    templates:
    - {name: main, steps: [[{name: a, template: run, withSequence: {count: 3}}]]}
    - {name: run, synchronization: LOCK, container: {image: busybox, command: ["true"]}}
"""
MUTEX = "{mutexes: [{name: one}]}"
SEMAPHORE = "{semaphore: {configMapKeyRef: {name: limits, key: two}}}"
LIMITS = {MUTEX: 1, SEMAPHORE: 2}


class Namespace:
    """Workflows side by side, with the table that the controller has of their locks."""

    def __init__(self, text: str, count: int, seed: int = 0) -> None:
        self.cache = Cache({INDEX: index})
        self.random = random.Random(seed)
        self.version = 1
        self.restart()
        self.all: dict[str, Simulation] = {}
        for number in range(count):
            made = workflow(text, name=f"wf-{number}")
            made["metadata"]["uid"] = f"uid-{number}"
            self.all[made["metadata"]["name"]] = Simulation(made)
            self._stored(self.all[made["metadata"]["name"]])

    def restart(self) -> None:
        """What the table kept in memory is lost."""
        self.table = LockTable(self.cache, lambda namespace, name, key: {"two": "2"}.get(key))

    def _stored(self, simulation: Simulation) -> None:
        self.version += 1
        simulation.workflow["metadata"]["resourceVersion"] = str(self.version)
        self.cache.upsert(copy.deepcopy(simulation.workflow))

    def look(self, name: str, *, seen: bool = True) -> Plan:
        """One pass of one workflow; `seen` is whether the cache gets what it writes."""
        simulation = self.all[name]
        moment, locks = self.table.observed(simulation.workflow)
        plan = simulation.decided(locks=locks)
        if self.table.admit(simulation.workflow, moment, plan):
            simulation.carry_out(plan)
            if seen:
                self._stored(simulation)
        return plan

    def running(self) -> int:
        """Pods that have not ended: each has a lock."""
        return sum("status" not in pod for each in self.all.values() for pod in each.pods.values())

    def finish_one(self) -> None:
        left = [(each, pod) for each in self.all.values() for pod in each.pods.values() if "status" not in pod]
        if left:
            simulation, pod = self.random.choice(left)
            simulation.finish(pod)


@pytest.mark.parametrize("text", [TEMPLATE, WHOLE, INSIDE], ids=["of a template", "of the workflow", "inside a loop"])
@pytest.mark.parametrize("lock", [MUTEX, SEMAPHORE], ids=["mutex", "semaphore"])
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_passes_crashes_and_ends_keeps_the_limit_and_ends(text: str, lock: str, seed: int) -> None:
    world = Namespace(text.replace("LOCK", lock), 4, seed)
    for _ in range(2000):
        action = world.random.random()
        if action < 0.7:
            world.look(world.random.choice(list(world.all)))
        elif action < 0.75:
            world.restart()
        else:
            world.finish_one()
        assert world.running() <= LIMITS[lock]
        if all(each.status.get("phase") in OVER for each in world.all.values()):
            break
    phases = {name: each.status.get("phase") for name, each in world.all.items()}
    assert set(phases.values()) == {"Succeeded"}, phases
    assert not any("synchronization" in each.status for each in world.all.values())


@pytest.mark.parametrize("lock", [MUTEX, SEMAPHORE])
def test_as_many_run_as_the_limit_says(lock: str) -> None:
    world = Namespace(INSIDE.replace("LOCK", lock), 3)
    for _ in range(4):
        for name in world.all:
            world.look(name)
    assert world.running() == LIMITS[lock]


def test_two_passes_at_once_do_not_both_get_a_mutex() -> None:
    world = Namespace(TEMPLATE.replace("LOCK", MUTEX), 2)
    first, second = world.all.values()
    observed = [world.table.observed(each.workflow) for each in (first, second)]
    plans = [each.decided(locks=locks) for each, (_, locks) in zip((first, second), observed, strict=True)]
    admitted = [
        world.table.admit(each.workflow, moment, plan)
        for each, (moment, _), plan in zip((first, second), observed, plans, strict=True)
    ]
    assert admitted == [True, False]
    world.look("wf-1")  # the write of the first is not in the cache yet
    assert second.status["synchronization"]["mutex"]["waiting"] == [
        {"mutex": "default/Mutex/one", "holder": "default/wf-0/wf-0"}
    ]


def test_the_status_is_as_argo_writes_it() -> None:
    world = Namespace(TEMPLATE.replace("LOCK", MUTEX), 2)
    for _ in range(2):
        world.look("wf-0")
        world.look("wf-1")
    first, second = world.all.values()
    held = {"mutex": "default/Mutex/one", "holder": "default/wf-0/wf-0"}
    assert first.status["synchronization"] == {"mutex": {"holding": [held]}}
    assert second.status["synchronization"] == {"mutex": {"waiting": [held]}}
    (node,) = second.nodes.values()
    assert (node["phase"], node["synchronizationStatus"]) == ("Pending", {"waiting": "default/Mutex/one"})
    assert node["message"] == "Waiting for default/Mutex/one lock. Lock status: 0/1"


def test_the_one_with_the_higher_priority_comes_first() -> None:
    world = Namespace(TEMPLATE.replace("LOCK", MUTEX), 3)
    world.all["wf-2"].workflow["spec"]["priority"] = 5
    for _ in range(2):
        for name in world.all:
            world.look(name)
    world.finish_one()
    for name in ("wf-0", "wf-1", "wf-2", "wf-2"):
        world.look(name)
    assert not world.all["wf-1"].pods
    assert world.all["wf-2"].pods


def test_a_workflow_that_is_deleted_or_stopped_leaves_no_lock() -> None:
    world = Namespace(TEMPLATE.replace("LOCK", MUTEX), 3)
    for _ in range(2):
        for name in world.all:
            world.look(name)
    gone = world.all.pop("wf-0")
    gone.workflow["metadata"]["resourceVersion"] = "1000"
    world.cache.remove(gone.workflow)
    world.all["wf-1"].workflow["spec"]["shutdown"] = "Stop"
    for _ in range(2):
        for name in world.all:
            world.look(name)
    assert world.all["wf-1"].status["phase"] == "Failed"
    assert len(world.all["wf-2"].pods) == 1


def test_a_semaphore_without_its_number_ends_the_step_with_its_name() -> None:
    world = Namespace(TEMPLATE.replace("LOCK", SEMAPHORE.replace("two", "gone")), 1)
    world.look("wf-0")
    assert world.all["wf-0"].status["phase"] == "Error"
    assert "default/ConfigMap/limits/gone" in world.all["wf-0"].status["message"]


def test_a_holder_of_another_namespace_in_a_forged_status_does_not_count() -> None:
    forged = {"synchronization": {"mutex": {"holding": [{"mutex": "other/Mutex/one", "holder": "x"}, 3, {}]}}}
    assert holdings(forged, "default") == holdings({"synchronization": 3}, "default") == {}


def test_only_what_may_free_a_lock_wakes_others() -> None:
    def with_status(**status: Any) -> Object:
        return {"metadata": {"namespace": "default"}, "status": status}

    held = with_status(synchronization={"mutex": {}}, phase="Running")
    assert may_wake_others(held, None)
    assert may_wake_others(held, with_status(phase="Running"))
    assert may_wake_others(held, with_status(synchronization={"mutex": {}}, phase="Failed"))
    assert not may_wake_others(held, held)
    assert not may_wake_others(with_status(phase="Running"), None)


@pytest.mark.parametrize(
    ("lock", "field"),
    [
        ({"mutexes": [{"name": "a"}]}, None),
        ({"mutex": {"name": "a", "namespace": "other"}}, "mutex.namespace"),
        ({"mutexes": [{"name": "a", "database": True}]}, None),
        ({"mutex": {"name": "a/b"}}, "mutex.name"),
        ({"semaphores": [{"configMapKeyRef": {"name": "a"}}]}, "semaphores[0].configMapKeyRef.key"),
        ({"semaphore": {"database": {"key": "a"}}}, None),
        ({"semaphore": {"database": {"table": "a"}}}, "semaphore.database.key"),
        ({"spinlock": {}}, "spinlock"),
        ({"mutexes": 3}, "mutexes"),
    ],
)
def test_what_is_refused(lock: dict[str, Any], field: str | None) -> None:
    found = judged(spec({"container": {"image": "x"}, "synchronization": lock}))
    assert found == ([] if field is None else [f"spec.templates[0].synchronization.{field}"])


class Counted(list[dict[str, Any]]):
    """A list that counts how often lists of its kind are gone through."""

    reads = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        Counted.reads += 1
        return super().__iter__()


def test_statuses_with_very_many_locks_are_not_read_on_the_event_loop() -> None:
    """Tenants write them, and a pass over any workflow of the namespace would read all of them first."""
    table = LockTable(cache := Cache({INDEX: index}), lambda namespace, name, key: None)
    for number in range(20):
        name = f"other{number}"
        entries = Counted(
            {"semaphore": f"default/ConfigMap/c/{at}", "holders": [f"default/{name}"]} for at in range(99)
        )
        other = workflow(WHOLE)
        other["metadata"] |= {"name": name, "uid": name, "resourceVersion": "1"}
        other["status"] = {"phase": "Running", "synchronization": {"semaphore": {"holding": entries}}}
        cache.upsert(other)
    Counted.reads = 0
    _, lock = table.observed(workflow(WHOLE))
    assert Counted.reads == 0
    assert lock(LockRequest("semaphore", "default/ConfigMap/c/7", ("c", "7"))).holders == tuple(
        f"default/other{number}" for number in range(20)
    )
