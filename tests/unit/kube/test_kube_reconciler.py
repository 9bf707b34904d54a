"""The pass that all controllers share: when it waits, what it reports, and what it forgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from kube_mini import MiniServer

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.errors import ApiError, Conflict, Forbidden
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.plan import Plan, PlanFailed, PlannedEvent
from paddlecloud.kube.reconciler import Reconciler
from paddlecloud.kube.resource import PADDLEJOBS, Key, Object

JOBS = "/apis/batch.paddlepaddle.org/v1/namespaces/ns/paddlejobs"
PODS = "/api/v1/namespaces/ns/pods"
EVENTS = "/api/v1/namespaces/ns/events"
KEY = Key("ns", "job")


class Pods(Reconciler[int, Plan]):
    """Wants a pod `p`; what it observes is how often it did."""

    def __init__(self, server: MiniServer) -> None:
        self.clock_ = FakeClock()
        super().__init__(Client(server), component="test", clock=self.clock_)
        self.passes = 0
        self.pause = 0.0
        self.after: float | None = None
        self.forgotten: list[tuple[Key, str]] = []
        self.primary = (Informer(self.client, PADDLEJOBS),)
        self._server = server

    def sync(self) -> None:
        """What the informer would do."""
        jobs = [obj for path, obj in self._server.objects.items() if path.startswith(JOBS)]
        self.primary[0].cache.replace(jobs, str(self._server.version))

    async def observe(self, obj: Object) -> int:
        self.passes += 1
        return self.passes

    def decide(self, obj: Object, observed: int, now: float) -> Plan:
        owner = {"kind": "PaddleJob", "name": "job", "uid": obj["metadata"]["uid"], "controller": True}
        meta = {"name": "p", "namespace": "ns", "ownerReferences": [owner]}
        return Plan(
            create=[{"apiVersion": "v1", "kind": "Pod", "metadata": meta}],
            events=[PlannedEvent("Created", "made p", if_done=True), PlannedEvent("Looked", f"pass {observed}")],
            after=self.after,
        )

    def rest(self, observed: int) -> float:
        return self.pause

    def forget(self, key: Key, uid: str) -> None:
        self.forgotten.append((key, uid))


@pytest.fixture
def server() -> MiniServer:
    server = MiniServer()
    server.put(JOBS, "job", apiVersion="batch.paddlepaddle.org/v1", kind="PaddleJob")
    return server


@pytest.fixture
def pods(server: MiniServer) -> Pods:
    reconciler = Pods(server)
    reconciler.sync()
    return reconciler


def events(server: MiniServer) -> list[tuple[str, int]]:
    found = [obj for path, obj in server.objects.items() if path.startswith(EVENTS)]
    return sorted((event["reason"], event["count"]) for event in found)


def refuse_pods(server: MiniServer, error: ApiError) -> None:
    server.refuse = lambda method, path: error if method == "POST" and path == PODS else None


async def fail(pods: Pods) -> None:
    with pytest.raises(PlanFailed):
        await pods.reconcile(KEY)


async def test_a_pass_carries_the_plan_out_records_its_events_and_says_when_to_look_again(
    server: MiniServer, pods: Pods
) -> None:
    pods.after = 7.0
    assert await pods.reconcile(KEY) == 7.0
    assert server.names(PODS) == ["p"]
    assert events(server) == [("Created", 1), ("Looked", 1)]


async def test_nothing_is_decided_before_our_own_writes_have_come_back(server: MiniServer, pods: Pods) -> None:
    await pods.reconcile(KEY)
    assert (await pods.reconcile(KEY) or 0) > 0
    assert pods.passes == 1
    pods.expectations.observe(KEY, None, server.objects[f"{PODS}/p"])
    await pods.reconcile(KEY)
    assert pods.passes == 2


async def test_a_refusal_is_reported_once_and_success_is_not_claimed(server: MiniServer, pods: Pods) -> None:
    refuse_pods(server, Forbidden("exceeded quota"))
    await fail(pods)
    await fail(pods)
    assert [event for event in events(server) if event[0] != "Looked"] == [("FailedCreate", 1)]
    assert "exceeded quota" in pods.refusal_of(server.objects[f"{JOBS}/job"])


async def test_another_refusal_is_another_event_and_so_is_the_same_after_a_success(
    server: MiniServer, pods: Pods
) -> None:
    refuse_pods(server, Forbidden("exceeded quota"))
    await fail(pods)
    refuse_pods(server, Forbidden("no such account"))
    await fail(pods)
    assert [event for event in events(server) if event[0] == "FailedCreate"] == [("FailedCreate", 1)] * 2
    server.refuse = lambda method, path: None
    await pods.reconcile(KEY)
    assert pods.refusal_of(server.objects[f"{JOBS}/job"]) == ""
    pods.expectations.forget(KEY)
    refuse_pods(server, Forbidden("no such account"))
    await fail(pods)
    assert sorted(event[1] for event in events(server) if event[0] == "FailedCreate") == [1, 2]


async def test_conflicts_are_tried_again_without_a_word(server: MiniServer, pods: Pods) -> None:
    refuse_pods(server, Conflict("the object has been modified"))
    await fail(pods)
    assert [event for event in events(server) if event[0] != "Looked"] == []
    assert pods.refusal_of(server.objects[f"{JOBS}/job"]) == ""


async def test_an_object_that_is_gone_is_forgotten_with_all_that_is_known_of_it(server: MiniServer, pods: Pods) -> None:
    job = server.objects[f"{JOBS}/job"]
    refuse_pods(server, Forbidden("exceeded quota"))
    await fail(pods)
    server.drop(JOBS, "job")
    pods.sync()
    assert await pods.reconcile(KEY) is None
    assert pods.forgotten == [(KEY, job["metadata"]["uid"])]
    assert pods.refusal_of(job) == ""
    assert await pods.reconcile(KEY) is None
    assert len(pods.forgotten) == 1


async def test_an_object_made_anew_under_its_name_is_not_taken_for_the_last_one(server: MiniServer, pods: Pods) -> None:
    refuse_pods(server, Forbidden("exceeded quota"))
    await fail(pods)
    old = server.objects[f"{JOBS}/job"]
    server.drop(JOBS, "job")
    server.put(JOBS, "job", apiVersion="batch.paddlepaddle.org/v1", kind="PaddleJob")
    pods.sync()
    await fail(pods)
    assert pods.forgotten == [(KEY, old["metadata"]["uid"])]
    about = [
        obj["involvedObject"]["uid"]
        for path, obj in server.objects.items()
        if path.startswith(EVENTS) and obj["reason"] == "FailedCreate"
    ]
    assert len(set(about)) == 2, "the refusal is reported on the new object as well"


async def test_an_expensive_object_rests_between_two_passes(pods: Pods) -> None:
    pods.pause = 0.25
    await pods.reconcile(KEY)
    pods.expectations.forget(KEY)
    assert await pods.reconcile(KEY) == pytest.approx(0.25)
    await pods.clock_.advance(0.25)
    await pods.reconcile(KEY)
    assert pods.passes == 2


async def test_a_kind_names_its_own_events_and_acts_before_the_plan(server: MiniServer) -> None:
    class Own(Pods):
        acts = True

        def refused(self, obj: Object, failed: PlanFailed) -> Sequence[PlannedEvent]:
            return [PlannedEvent("ErrorCreatePod", str(failed), type="Warning")]

        async def act(self, obj: Object, observed: int, plan: Any) -> float | None:
            return await super().act(obj, observed, plan) if self.acts else 2.0

    own = Own(server)
    own.sync()
    refuse_pods(server, Forbidden("exceeded quota"))
    await fail(own)
    assert [event for event in events(server) if event[0] != "Looked"] == [("ErrorCreatePod", 1)]
    server.refuse = lambda method, path: None
    own.acts = False
    assert await own.reconcile(KEY) == 2.0
    assert server.names(PODS) == []
