"""Loads and the scheduler run on them in its own time."""

from __future__ import annotations

import pytest

from paddlecloud.local.scheduler.simulation.simulation import Simulation
from paddlecloud.local.scheduler.simulation.traces import Job, TraceError, from_csv, from_yaml, load
from unit.local.scheduler.scheduler_things import node, queue

GENERATOR = """
cohorts:
- className: cohort
  count: 2
  queuesSets:
  - className: cq
    count: 3
    nominalQuota: 20
    borrowingLimit: 100
    reclaimWithinCohort: Any
    workloadsSets:
    - count: 4
      creationIntervalMs: 100
      workloads:
      - {className: small, runtimeMs: 200, priority: 50, request: 1}
"""


def job(name: str, arrival: float, runtime: float, cpu: str, **fields: object) -> Job:
    return Job(name, arrival, runtime, {"cpu": cpu}, **fields)  # type: ignore[arg-type]


def test_a_table_of_jobs() -> None:
    found = from_csv("name,arrival,runtime,pods,cpu,gpu,queue,priority\na,1m,90s,2,4,1,q,5\n,0,200ms,,1,,,\n").jobs
    assert found[0] == Job("a", 60.0, 90.0, {"cpu": "4", "nvidia.com/gpu": "1"}, 2, 2, "q", 5)
    assert (found[1].name, found[1].runtime, found[1].pods) == ("job-2", 0.2, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "runtime among them"),
        ("name,cpu\na,1\n", "runtime among them"),
        ("runtime,cpu\nsoon,1\n", "line 2: 'soon' is not a time"),
        ("runtime,cpu\n5,much\n", "line 2: 'much' is not a quantity"),
        ("runtime,pods\n5,two\n", "line 2: invalid literal"),
        ("name,runtime\na,5\nb,5\na,5\n", "line 4: there is a job called 'a' already"),
    ],
)
def test_a_table_that_cannot_be_read_says_where(text: str, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        from_csv(text)


def test_a_generator_of_kueue() -> None:
    trace = load(GENERATOR, name="generator.yaml")
    assert len(trace.jobs) == 2 * 3 * 4
    assert [j.arrival for j in trace.jobs[:7]] == [0.0] * 6 + [0.1]
    specs = {q["metadata"]["name"]: q["spec"] for q in trace.queues}
    assert specs["cohort-0"]["capability"] == {"cpu": "60"}
    assert specs["cohort-0-cq-0"] == {
        "parent": "cohort-0",
        "deserved": {"cpu": "20"},
        "capability": {"cpu": "120"},
        "reclaimable": True,
    }


@pytest.mark.parametrize("text", ["- 1", "{}", "cohorts: [{}]", "a: [b"])
def test_other_yaml_is_refused(text: str) -> None:
    with pytest.raises(TraceError):
        from_yaml(text)


def test_jobs_wait_for_each_other_and_time_jumps() -> None:
    jobs = [job("a", 0, 3600, "4"), job("b", 10, 1800, "4")]
    report = Simulation([node("n", "4")], jobs).run()
    assert report.makespan == 5400.0
    assert report.by_queue["default"].longest == 3590.0
    assert report.utilisation == {"cpu": 1.0}
    assert report.finished == 2


def test_a_gang_starts_whole() -> None:
    jobs = [job("a", 0, 100, "1"), job("gang", 0, 10, "2", pods=2, least=2)]
    assert Simulation([node("n", "4")], jobs).run().makespan == 110.0


def test_who_is_made_to_leave_starts_over() -> None:
    jobs = [job("low", 0, 100, "4"), job("high", 50, 10, "4", priority=5)]
    report = Simulation([node("n", "4")], jobs).run()
    assert (report.evictions, report.makespan) == (1, 160.0)
    assert report.by_queue["default"].longest == 0.0  # both started as they came


def test_queues_hold_their_jobs_back() -> None:
    jobs = [job(f"j{number}", 0, 10, "2", queue="q") for number in range(4)]
    limit = [queue("q", capability={"cpu": "4"})]
    assert Simulation([node("n", "64")], jobs, queues=limit).run().makespan == 20.0


def test_what_never_fits_is_reported_with_its_reason() -> None:
    report = Simulation([node("n", "4")], [job("big", 0, 10, "8"), job("small", 0, 10, "1")]).run()
    assert report.unfinished == [("big", "0/1 nodes are available: 1 Insufficient cpu. cpu: needs 8, 4 free of 4")]


def test_the_clock_can_be_stopped() -> None:
    report = Simulation([node("n", "4")], [job("a", 0, 10, "1"), job("b", 100, 10, "1")]).run(until=50)
    assert report.finished == 1
    assert [name for name, _ in report.unfinished] == ["b"]


def test_the_same_load_gives_the_same_report() -> None:
    trace = load(GENERATOR, name="g.yaml")
    reports = [Simulation([node("n", "200")], trace.jobs, queues=trace.queues).run() for _ in range(2)]
    assert reports[0] == reports[1]
    assert reports[0].finished == 24
