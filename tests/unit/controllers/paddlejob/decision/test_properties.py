"""Whatever happens in whatever order, and wherever the controller dies: the same end, no pod twice, few writes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from unit.controllers.paddlejob.world import Crash, JobCluster, paddlejob

JOBS: tuple[dict[str, Any], ...] = (
    {"worker": 1},
    {"worker": 3},
    {"ps": 2, "worker": 2, "withGloo": 1},
    {"ps": 1, "worker": 2},
    {"worker": 2, "intranet": "Service"},
    {"worker": 2, "schedulingPolicy": {"queue": "q"}},
)

EXAMPLES = 150

jobs = st.sampled_from(JOBS)
policies = st.sampled_from(["Never", "Always", "OnCompletion"])
picks = st.integers(0, 10**6)
crashes = st.lists(st.one_of(st.none(), st.integers(0, 4)), max_size=25)
"""After how many writes each of the controller's passes is cut short; None lets it do all it wants."""


def pick(names: list[str], number: int) -> str | None:
    return sorted(names)[number % len(names)] if names else None


def phase_of(world: JobCluster, name: str) -> str:
    return str(world.pods[name]["status"]["phase"])


def happen(world: JobCluster, event: str, number: int) -> None:
    """One thing that a cluster may do of its own accord."""
    pods = world.pods
    if event == "assign":
        name = pick([n for n, p in pods.items() if not p["spec"].get("nodeName")], number)
        if name:
            world.assign(name)
    elif event == "run":
        name = pick([n for n in pods if phase_of(world, n) == "Pending" and pods[n]["spec"].get("nodeName")], number)
        if name and world.may_start(name):
            world.run(name)
    elif event == "succeed":
        name = pick([n for n in pods if "-worker-" in n and phase_of(world, n) == "Running"], number)
        if name:
            world.succeed(name)
    elif event == "fail":
        name = pick([n for n in pods if phase_of(world, n) == "Running"], number)
        if name:
            world.fail(name, code=1 + number % 140)
    elif event == "vanish":
        name = pick([n for n in pods if phase_of(world, n) in ("Pending", "Running")], number)
        if name:
            world.vanish(name)
    elif event == "obey":
        world.obey()
    elif event == "later":
        world.now += number % 40
    else:
        raise AssertionError(event)


def controller(world: JobCluster, event: str, number: int) -> None:
    """One pass; with `crash` it dies after some of its writes, and its successor knows only what was written."""
    try:
        world.step(crash_after=number % 6 if event == "crash" else None)
    except Crash:
        world.forget()


def finish(world: JobCluster, crashes: list[int | None] | None = None) -> None:
    """Let the cluster and the controller do their work until the job has ended; the controller dies now and then."""
    dying = iter(crashes or ())
    for _ in range(400):
        writes = next(dying, None)
        controller(world, "step" if writes is None else "crash", writes or 0)
        if world.phase in ("Completed", "Failed"):
            for _ in range(3):
                world.obey()
                world.step()
            return
        world.obey()
        for event in ("assign", "run"):
            for number in range(len(world.pods)):
                happen(world, event, number)
        if world.phase == "Running":
            happen(world, "succeed", 0)
        world.now += 5
    raise AssertionError(f"never ended: {world.status}")


peaceful = st.lists(
    st.tuples(st.sampled_from(["step", "crash", "assign", "run", "succeed", "obey", "later"]), picks),
    min_size=10,
    max_size=60,
)
stormy = st.lists(
    st.tuples(
        st.sampled_from(["step", "step", "crash", "assign", "run", "succeed", "fail", "vanish", "obey", "later"]), picks
    ),
    min_size=15,
    max_size=80,
)


def play(world: JobCluster, events: list[tuple[str, int]]) -> None:
    for event, number in events:
        if event in ("step", "crash"):
            controller(world, event, number)
        else:
            happen(world, event, number)


@settings(max_examples=EXAMPLES, deadline=None)
@given(spec=jobs, policy=policies, events=peaceful, deaths=crashes)
def test_without_failures_every_order_and_every_crash_ends_the_same(
    spec: dict[str, Any], policy: str, events: list[tuple[str, int]], deaths: list[int | None]
) -> None:
    world = JobCluster(paddlejob(**spec, cleanPodPolicy=policy))
    play(world, events)
    finish(world, deaths)
    assert world.phase == "Completed"
    assert world.status.get("generation") == 0, "nothing was lost, so nothing was restarted"
    assert world.status["worker"]["succeeded"] == spec["worker"]
    if policy == "Never":
        assert len(world.pods) == spec["worker"] + spec.get("ps", 0)
    else:
        assert world.pods == {}
    assert all(phase_of(world, name) in ("Succeeded", "Failed") for name in world.pods)


@settings(max_examples=EXAMPLES, deadline=None)
@given(spec=jobs, events=stormy, limit=st.integers(0, 3))
def test_in_any_storm_the_job_ends_within_its_budget(
    spec: dict[str, Any], events: list[tuple[str, int]], limit: int
) -> None:
    world = JobCluster(paddlejob(**spec, backoffLimit=limit, cleanPodPolicy="Never"))
    play(world, events)
    finish(world)
    assert world.status.get("restarts", 0) <= limit
    generations = world.status.get("restarts", 0) + world.status.get("disruptions", 0)
    assert world.status.get("generation", 0) == generations, "every generation is one counted restart"
    if world.phase == "Failed":
        assert world.status["failures"][-1]["action"] == "Fail"
    before = len(world.pods)
    for name in list(world.pods):
        world.vanish(name)
    world.step()
    assert len(world.pods) == 0 <= before, "nothing rises after the end"


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    spec=st.sampled_from([*JOBS[:5], {"worker": 9}, {"ps": 6, "worker": 2, "withGloo": 1}, {"ps": 1, "worker": 1}]),
    order=st.lists(st.tuples(picks, st.integers(0, 3000)), min_size=30, max_size=80),
)
def test_a_life_costs_at_most_two_writes_per_pod_and_eight(spec: dict[str, Any], order: list[tuple[int, int]]) -> None:
    """Pods become ready and done in any order, over up to a minute; the controller looks after each event."""
    world = JobCluster(paddlejob(**spec, cleanPodPolicy="Never"))
    world.settle()
    world.assign(waiting="ContainerCreating")  # a kubelet that watches what its pods wait for needs no nudging
    world.settle()
    moments = iter(order)
    for event in ("run", "succeed"):
        for _ in range(len(world.pods)):
            number, milliseconds = next(moments, (0, 0))
            world.now += milliseconds / 1000
            happen(world, event, number)
            world.settle()
        for number in range(len(world.pods)):  # those that the order left out
            happen(world, event, number)
            world.settle()
    finish(world)
    pods = spec["worker"] + spec.get("ps", 0)
    assert len(world.writes) <= 2 * pods + 8, world.writes
