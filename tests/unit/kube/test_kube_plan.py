"""Carrying out a plan: all of it at once, harmless refusals tolerated, the status once and only if it changed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_mini import MiniServer

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.errors import ApiError, Forbidden, Invalid, ServiceUnavailable, Unreachable
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.expectations import Expectations
from paddlecloud.kube.plan import Delete, NameTaken, Patch, Plan, PlanFailed, PlannedEvent, carry_out, merge_diff
from paddlecloud.kube.resource import PODS, Key, Object

JOBS = "/apis/batch.paddlepaddle.org/v1/namespaces/ns/paddlejobs"
NS = "/api/v1/namespaces/ns/pods"
OWNER_KEY = Key("ns", "job")


@pytest.fixture
def server() -> MiniServer:
    return MiniServer()


@pytest.fixture
def owner(server: MiniServer) -> Object:
    return server.put(
        JOBS, "job", apiVersion="batch.paddlepaddle.org/v1", kind="PaddleJob", status={"phase": "Pending"}
    )


def pod(name: str, owner: Object) -> Object:
    ref = {"kind": "PaddleJob", "name": "job", "uid": owner["metadata"]["uid"], "controller": True}
    meta = {"name": name, "namespace": "ns", "ownerReferences": [ref]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {}}


async def test_everything_in_a_plan_is_done(server: MiniServer, owner: Object) -> None:
    old = server.put(NS, "old", kind="Pod")
    server.put(NS, "kept", kind="Pod", metadata={"labels": {"a": "b"}})
    plan = Plan(
        create=[pod("p0", owner), pod("p1", owner)],
        patch=[Patch(PODS, "kept", "ns", {"metadata": {"labels": {"a": "c"}}})],
        delete=[Delete(PODS, "old", "ns", uid=old["metadata"]["uid"])],
        status={"phase": "Running"},
        events=[PlannedEvent("Created", "created 2 pods")],
    )
    client = Client(server)
    recorder = EventRecorder(client, component="test", clock=FakeClock())
    outcome = await carry_out(plan, client, owner=owner, recorder=recorder)
    assert sorted(server.names(NS)) == ["kept", "p0", "p1"]
    assert server.objects[f"{NS}/kept"]["metadata"]["labels"] == {"a": "c"}
    assert server.objects[f"{JOBS}/job"]["status"] == {"phase": "Running"}
    assert len(server.names("/api/v1/namespaces/ns/events")) == 1
    assert len(outcome.created) == 2
    assert outcome.deleted == 1
    assert outcome.status is not None
    assert len(server.writes()) == 6  # 2 creations, 1 patch, 1 deletion, 1 status, 1 event


async def test_creations_run_at_once_but_not_more_than_allowed(server: MiniServer, owner: Object) -> None:
    active = most = 0
    answer = server.request

    async def slow(*args: Any, **options: Any) -> Any:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await asyncio.sleep(0)
        response = await answer(*args, **options)
        active -= 1
        return response

    server.request = slow  # type: ignore[method-assign]
    await carry_out(Plan(create=[pod(f"p{i}", owner) for i in range(20)]), Client(server), owner=owner, concurrency=8)
    assert len(server.names(NS)) == 20
    assert most == 8


async def test_an_unchanged_status_is_not_written_and_a_changed_one_only_where_it_changed(
    server: MiniServer, owner: Object
) -> None:
    await carry_out(Plan(status={"phase": "Pending"}), Client(server), owner=owner)
    assert server.writes() == []
    await carry_out(Plan(status={"mode": "PS", "phase": "Pending"}), Client(server), owner=owner)
    method, path, body = server.writes()[0]
    assert (method, path, body) == ("PATCH", f"{JOBS}/job/status", {"status": {"mode": "PS"}})


async def test_what_exists_and_is_ours_counts_as_done(server: MiniServer, owner: Object) -> None:
    server.put(NS, "p0", **pod("p0", owner))
    outcome = await carry_out(Plan(create=[pod("p0", owner)]), Client(server), owner=owner)
    assert [o["metadata"]["name"] for o in outcome.present] == ["p0"]


async def test_a_name_taken_by_somebody_else_is_an_error_that_names_them(server: MiniServer, owner: Object) -> None:
    ref = {"kind": "Job", "name": "other", "uid": "x", "controller": True}
    server.put(NS, "p0", kind="Pod", metadata={"ownerReferences": [ref]})
    with pytest.raises(PlanFailed, match=r"Pod p0 exists and is controlled by Job other") as caught:
        await carry_out(Plan(create=[pod("p0", owner), pod("p1", owner)]), Client(server), owner=owner)
    assert isinstance(caught.value.errors[0][1], NameTaken)
    assert "p1" in server.names(NS), "one bad name must not stop the others"


async def test_what_is_gone_already_is_no_error(server: MiniServer, owner: Object) -> None:
    server.put(NS, "reborn", kind="Pod")
    plan = Plan(
        patch=[Patch(PODS, "none", "ns", {})],
        delete=[Delete(PODS, "none", "ns"), Delete(PODS, "reborn", "ns", uid="an earlier one")],
    )
    outcome = await carry_out(plan, Client(server), owner=owner)
    assert outcome.deleted == 0
    assert server.names(NS) == ["reborn"], "a successor of the same name was deleted"


async def test_an_owner_deleted_meanwhile_is_no_error(server: MiniServer, owner: Object) -> None:
    server.drop(JOBS, "job")
    outcome = await carry_out(Plan(status={"phase": "Running"}), Client(server), owner=owner)
    assert outcome.status is None


async def test_creating_in_a_namespace_that_ends_is_no_error(server: MiniServer, owner: Object) -> None:
    ending = Forbidden("being terminated", details={"causes": [{"reason": "NamespaceTerminating"}]})
    server.refuse = lambda method, path: ending if method == "POST" else None
    outcome = await carry_out(Plan(create=[pod("p0", owner)]), Client(server), owner=owner)
    assert outcome.created == []


@pytest.mark.parametrize(
    ("refusal", "tried"),
    [
        (Forbidden("exceeded quota"), 1),
        (Unreachable("no route"), 1),
        (ServiceUnavailable("busy", retry_after=9), 1),
        (Invalid("bad image"), 10),
    ],
)
async def test_after_a_refusal_that_concerns_all_the_rest_is_not_tried(
    server: MiniServer, owner: Object, refusal: ApiError, tried: int
) -> None:
    server.refuse = lambda method, path: refusal if method == "POST" else None
    plan = Plan(create=[pod(f"p{i}", owner) for i in range(10)], status={"phase": "Waiting"})
    with pytest.raises(PlanFailed, match=refusal.message) as caught:
        await carry_out(plan, Client(server), owner=owner, concurrency=1)
    assert len(caught.value.errors) == tried
    assert caught.value.outcome.skipped == 10 - tried
    assert caught.value.retry_after == refusal.retry_after
    assert server.objects[f"{JOBS}/job"]["status"] == {"phase": "Waiting"}, "the status tells what was observed"


async def test_a_status_that_records_an_intent_is_written_before_the_intent_is_acted_on(
    server: MiniServer, owner: Object
) -> None:
    plan = Plan(create=[pod("p0", owner)], status={"restarts": 1}, status_first=True)
    await carry_out(plan, Client(server), owner=owner)
    assert [w[0] for w in server.writes()] == ["PATCH", "POST"]
    server.refuse = lambda method, path: ServiceUnavailable("no") if method == "PATCH" else None
    plan = Plan(create=[pod("p1", owner)], status={"restarts": 2}, status_first=True)
    with pytest.raises(PlanFailed):
        await carry_out(plan, Client(server), owner=owner)
    assert "p1" not in server.names(NS)


async def test_a_status_that_records_what_was_done_is_not_written_if_it_was_not(
    server: MiniServer, owner: Object
) -> None:
    server.refuse = lambda method, path: ServiceUnavailable("no") if method == "POST" else None
    plan = Plan(create=[pod("p0", owner)], status={"last": "now"}, status_if_done=True)
    with pytest.raises(PlanFailed):
        await carry_out(plan, Client(server), owner=owner)
    assert [w[0] for w in server.writes()] == ["POST"]
    server.refuse = lambda method, path: None
    await carry_out(plan, Client(server), owner=owner)
    assert [w[0] for w in server.writes()][-1] == "PATCH"


async def test_every_write_is_expected_until_it_is_seen(server: MiniServer, owner: Object) -> None:
    doomed = server.put(NS, "old", apiVersion="v1", kind="Pod")
    kept = server.put(NS, "kept", apiVersion="v1", kind="Pod")
    expectations = Expectations(clock=FakeClock())
    plan = Plan(
        create=[pod("p0", owner)],
        patch=[Patch(PODS, "kept", "ns", {"x": 1}, seen=kept["metadata"]["resourceVersion"])],
        delete=[Delete(PODS, "old", "ns", uid=doomed["metadata"]["uid"])],
        status={"phase": "Running"},
    )
    before = len(server.log)
    await carry_out(plan, Client(server), owner=owner, expectations=expectations)
    for _, kind, _, obj in server.log[before:]:
        assert expectations.pending(OWNER_KEY) is not None
        old, new = (obj, None) if kind == "DELETED" else (None, obj)
        expectations.observe(OWNER_KEY, old, new)
    assert expectations.pending(OWNER_KEY) is None


async def test_writes_that_failed_or_were_not_needed_are_not_expected(server: MiniServer, owner: Object) -> None:
    server.put(NS, "p0", **pod("p0", owner))
    expectations = Expectations(clock=FakeClock())
    server.refuse = lambda method, path: Forbidden("no") if path.endswith("/status") else None
    plan = Plan(
        create=[pod("p0", owner)],
        patch=[Patch(PODS, "none", "ns", {}, seen="1")],
        delete=[Delete(PODS, "none2", "ns", uid="u")],
        status={"phase": "Running"},
    )
    with pytest.raises(PlanFailed, match="status of PaddleJob job: no"):
        await carry_out(plan, Client(server), owner=owner, expectations=expectations)
    assert expectations.pending(OWNER_KEY) is None


JSON_VALUES = st.recursive(
    st.one_of(st.integers(0, 3), st.sampled_from(["a", "b"]), st.booleans(), st.lists(st.integers(0, 2), max_size=2)),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
MAPPINGS = st.dictionaries(st.sampled_from("abc"), JSON_VALUES, max_size=3)


@given(MAPPINGS, MAPPINGS)
def test_the_difference_merged_into_the_old_gives_the_new(old: Object, new: Object) -> None:
    from kube_mini import _merge

    assert _merge(old, merge_diff(old, new)) == new
    assert (merge_diff(old, new) == {}) == (old == new)
