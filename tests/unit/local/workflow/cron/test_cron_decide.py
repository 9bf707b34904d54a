"""CronWorkflows: what is run when, what is counted, what is kept."""

from __future__ import annotations

import copy
import threading
from typing import Any, cast

import pytest

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock, rfc3339
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.cron.controller import CronWorkflowReconciler
from paddlecloud.local.workflow.cron.decide import Observed, decide

HOUR = 1_790_002_800.0
"""A full hour."""
RUN: dict[str, Any] = {"entrypoint": "main", "templates": [{"name": "main", "container": {"image": "busybox"}}]}


class Cron:
    """A CronWorkflow with its Workflows, one pass at a time. The controller keeps the schedule from `since` on."""

    def __init__(self, since: float = HOUR - 600, **spec: Any) -> None:
        meta = {
            "name": "hourly",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "1",
            "creationTimestamp": rfc3339(HOUR - 600),
        }
        whole = {"schedules": ["0 * * * *"], "workflowSpec": RUN, **spec}
        kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "CronWorkflow"}
        self.object: Object = {**kind, "metadata": meta, "spec": whole}
        self.workflows: dict[str, Object] = {}
        self.since = since
        self.plan = Plan()
        self.refusal = ""

    def look(self, now: float) -> list[str]:
        """One pass; gives the names of the Workflows it creates."""
        observed = Observed(tuple(copy.deepcopy(list(self.workflows.values()))), self.since, self.refusal)
        self.plan = decide(copy.deepcopy(self.object), observed, now)
        for patch in self.plan.patch:
            target = self.object if patch.resource.kind == "CronWorkflow" else self.workflows[patch.name]
            for part in ("status", "spec"):
                changed = {**(target.get(part) or {}), **(patch.patch.get(part) or {})}
                target[part] = {key: value for key, value in changed.items() if value is not None}
            for part in ("annotations", "labels"):
                given = (patch.patch.get("metadata") or {}).get(part) or {}
                target["metadata"][part] = {**(target["metadata"].get(part) or {}), **given}
        for delete in self.plan.delete:
            del self.workflows[delete.name]
        for made in self.plan.create:
            made["metadata"] |= {"uid": f"uid-{made['metadata']['name']}", "resourceVersion": "1"}
            self.workflows[made["metadata"]["name"]] = made
        return [made["metadata"]["name"] for made in self.plan.create]

    def end(self, name: str, phase: str, at: float) -> None:
        self.workflows[name]["status"] = {"phase": phase, "finishedAt": rfc3339(at)}

    @property
    def status(self) -> Object:
        return dict(self.object.get("status") or {})


def name(due: float) -> str:
    return f"hourly-{int(due)}"


def test_given_a_due_time_then_one_workflow_is_made_for_it() -> None:
    cron = Cron(workflowMetadata={"labels": {"a": "b"}})
    assert cron.look(HOUR - 1) == []
    assert cron.plan.after == 1
    assert cron.look(HOUR + 1) == [name(HOUR)]
    meta = cron.workflows[name(HOUR)]["metadata"]
    assert meta["labels"] == {"workflows.argoproj.io/cron-workflow": "hourly", "a": "b"}
    assert meta["annotations"] == {"workflows.argoproj.io/scheduled-time": rfc3339(HOUR)}
    assert meta["ownerReferences"][0]["controller"] is True
    assert cron.look(HOUR + 2) == []
    assert cron.status["lastScheduledTime"] == rfc3339(HOUR)
    assert [each["name"] for each in cron.status["active"]] == [name(HOUR)]
    assert cron.object["metadata"]["annotations"] == {"cronworkflows.argoproj.io/last-used-schedule": "0 * * * *"}


def test_a_creation_that_was_lost_is_repeated_and_never_doubled() -> None:
    cron = Cron()
    assert cron.look(HOUR + 1) == [name(HOUR)]
    cron.workflows.clear()  # the write never arrived
    assert cron.look(HOUR + 2) == [name(HOUR)]
    assert cron.look(HOUR + 3) == []


def test_what_ended_is_counted_once_also_when_it_was_never_seen_running() -> None:
    cron = Cron()
    cron.look(HOUR + 1)
    cron.end(name(HOUR), "Succeeded", HOUR + 2)
    for _ in range(3):
        cron.look(HOUR + 3)
    assert (cron.status["succeeded"], cron.status["failed"]) == (1, 0)
    cron.look(HOUR + 3601)
    cron.look(HOUR + 3602)
    cron.end(name(HOUR + 3600), "Failed", HOUR + 3603)
    for _ in range(3):
        cron.look(HOUR + 3604)
    assert (cron.status["succeeded"], cron.status["failed"]) == (1, 1)
    assert "active" not in cron.status


@pytest.mark.parametrize(
    ("deadline", "late", "runs"), [(None, 30, False), (60, 30, True), (60, 90, False), (0, 1, False)]
)
def test_what_was_missed_while_the_controller_was_down_runs_within_the_deadline(
    deadline: int | None, late: float, runs: bool
) -> None:
    cron = Cron(**({} if deadline is None else {"startingDeadlineSeconds": deadline}))
    cron.look(HOUR + 1)
    cron.look(HOUR + 2)
    cron.since = HOUR + 3600 * 5 + late
    assert cron.look(HOUR + 3600 * 5 + late) == ([name(HOUR + 3600 * 5)] if runs else [])


def test_a_pass_that_is_late_still_runs_what_came_due_meanwhile() -> None:
    cron = Cron()
    assert cron.look(HOUR + 900) == [name(HOUR)]


@pytest.mark.parametrize(
    ("policy", "made", "shutdown"),
    [("Allow", True, None), ("Forbid", False, None), ("Replace", True, "Terminate")],
)
def test_concurrency(policy: str, made: bool, shutdown: str | None) -> None:
    cron = Cron(concurrencyPolicy=policy)
    cron.look(HOUR)
    cron.look(HOUR + 1)
    assert bool(cron.look(HOUR + 3600)) is made
    assert cron.workflows[name(HOUR)]["spec"].get("shutdown") == shutdown


def test_given_a_forged_reference_in_the_status_then_only_the_own_workflow_is_ended() -> None:
    """Users write the status of a CronWorkflow; the controller may patch workflows of all namespaces."""
    cron = Cron(concurrencyPolicy="Replace")
    cron.look(HOUR)
    cron.look(HOUR + 1)
    uid = cron.workflows[name(HOUR)]["metadata"]["uid"]
    cron.object["status"]["active"] = [{"uid": uid, "name": "web", "namespace": "victim", "resourceVersion": "7"}]
    cron.look(HOUR + 3600)
    ended = [patch for patch in cron.plan.patch if patch.resource.kind == "Workflow"]
    assert [(patch.namespace, patch.name, patch.patch) for patch in ended] == [
        ("default", name(HOUR), {"metadata": {"uid": uid}, "spec": {"shutdown": "Terminate"}})
    ]
    assert [(each["namespace"], each["name"]) for each in cron.status["active"]] == [("default", name(HOUR))]


def test_history_keeps_the_newest() -> None:
    cron = Cron(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=0)
    for hour in range(5):
        due = HOUR + 3600 * hour
        cron.look(due)
        cron.look(due + 1)
        cron.end(name(due), "Failed" if hour == 4 else "Succeeded", due + 2)
        cron.look(due + 3)
    assert set(cron.workflows) == {name(HOUR + 3600 * 2), name(HOUR + 3600 * 3)}


def test_suspended_runs_nothing_and_resumed_runs_what_comes_then() -> None:
    cron = Cron(suspend=True)
    assert cron.look(HOUR + 1) == []
    assert cron.plan.after is None
    cron.object["spec"]["suspend"], cron.since = False, HOUR + 60
    assert cron.look(HOUR + 60) == []
    assert cron.look(HOUR + 3600) == [name(HOUR + 3600)]


def test_stop_strategy_stops_it_for_good() -> None:
    cron = Cron(stopStrategy={"expression": "cronworkflow.failed >= 1"})
    cron.look(HOUR)
    cron.look(HOUR + 1)
    cron.end(name(HOUR), "Error", HOUR + 2)
    cron.look(HOUR + 3)
    assert cron.status["phase"] == "Stopped"
    assert cron.object["metadata"]["labels"] == {"workflows.argoproj.io/cron-workflow-completed": "true"}
    assert cron.look(HOUR + 3600) == []


@pytest.mark.parametrize(
    ("when", "runs"),
    [
        ("{{= cronworkflow.failed == 0 }}", True),
        ("{{= cronworkflow.lastScheduledTime == nil }}", True),
        ("{{cronworkflow.name}} == daily", False),
    ],
)
def test_when_decides_about_a_run(when: str, runs: bool) -> None:
    assert bool(Cron(when=when).look(HOUR)) is runs


def test_a_condition_that_cannot_be_read_is_a_condition_of_the_object() -> None:
    cron = Cron(when="{{= nothing.there }}")
    assert cron.look(HOUR) == []
    assert [each["type"] for each in cron.status["conditions"]] == ["SpecError"]
    cron.object["spec"]["when"] = ""
    assert cron.look(HOUR + 1)
    assert "conditions" not in cron.status


def test_a_refused_creation_is_a_condition_until_it_succeeds() -> None:
    cron = Cron()
    cron.look(HOUR)
    cron.workflows.clear()
    cron.refusal = "exceeded quota"
    cron.look(HOUR + 1)
    assert cron.status["conditions"] == [{"type": "SubmissionError", "status": "True", "message": "exceeded quota"}]
    cron.refusal = ""
    cron.look(HOUR + 2)
    assert "conditions" not in cron.status


def test_several_schedules_in_a_zone() -> None:
    cron = Cron(schedules=["0 * * * *", "30 * * * *"], timezone="Asia/Shanghai")
    assert cron.look(HOUR) == [name(HOUR)]
    assert cron.look(HOUR + 1801) == [name(HOUR + 1800)]
    written = "CRON_TZ=Asia/Shanghai 0 * * * *,CRON_TZ=Asia/Shanghai 30 * * * *"
    assert cron.object["metadata"]["annotations"] == {"cronworkflows.argoproj.io/last-used-schedule": written}


def test_an_odd_status_is_no_reason_to_fail() -> None:
    for status in (
        {"active": [1, {"uid": "x"}], "failed": "x", "lastScheduledTime": "soon"},
        [],
        {"conditions": [3]},
        {"active": 7, "conditions": True},
        {"active": [{"uid": []}]},
    ):
        cron = Cron()
        cron.object["status"] = status
        assert cron.look(HOUR) == [name(HOUR)]


@pytest.mark.parametrize("field", ["when", "stopStrategy"])
def test_a_condition_that_would_take_long_is_not_judged(field: str) -> None:
    """It would be judged every second, for as many CronWorkflows as a tenant makes."""
    costly = "all(1..60000, # > 0)"
    cron = Cron(**({"when": f"{{{{= {costly} }}}}"} if field == "when" else {field: {"expression": costly}}))
    assert cron.look(HOUR) == []
    assert [each["type"] for each in cron.status["conditions"]] == ["SpecError"]


async def test_decisions_are_taken_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = Manager(Client(cast(Any, None)), clock=FakeClock())  # nothing is asked of a server
    threads: list[threading.Thread] = []

    def decided(cron: Object, observed: Observed, now: float) -> Plan:
        threads.append(threading.current_thread())
        return decide(cron, observed, now)

    monkeypatch.setattr("paddlecloud.local.workflow.cron.controller.decide", decided)
    reconciler = CronWorkflowReconciler(manager, FakeClock())
    await reconciler.decided(Cron().object, Observed())
    assert threads != [threading.current_thread()]
