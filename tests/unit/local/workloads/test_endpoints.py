"""Endpoints: who answers behind a name, in slices and, for old clients, in Endpoints."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.endpoint_controller import by_labels, by_selector
from paddlecloud.local.workloads.endpoints import SLICE_SIZE, Observed, decide

SELECTOR = {"app": "web"}


def service(**spec: Any) -> Object:
    body = {"selector": SELECTOR, "ports": [{"port": 80, "targetPort": "http"}], **spec}
    meta = {"name": "web", "namespace": "default", "uid": "s"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": body}


def pod(name: str, *, ready: bool = True, leaving: bool = False, phase: str = "Running", **spec: Any) -> Object:
    meta: Object = {"name": name, "namespace": "default", "uid": f"u-{name}", "labels": SELECTOR}
    if leaving:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ports = [{"name": "http", "containerPort": 8080}]
    return {
        "metadata": meta,
        "spec": {"nodeName": "n", "containers": [{"name": "c", "ports": ports}], **spec},
        "status": {
            "phase": phase,
            "podIP": f"127.70.0.{name[-1]}",
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def made(svc: Object, *pods: Object) -> tuple[Object, Object]:
    piece, mirror = decide(svc, Observed(pods)).create
    return piece, mirror


@pytest.mark.parametrize(
    ("case", "one", "publish", "conditions"),
    [
        ("ready", pod("p1"), False, (True, True, False)),
        ("not ready", pod("p1", ready=False), False, (False, False, False)),
        ("published all the same", pod("p1", ready=False), True, (True, True, False)),
        ("leaving but serving", pod("p1", leaving=True), False, (False, True, True)),
    ],
)
def test_conditions_of_an_endpoint(case: str, one: Object, publish: bool, conditions: tuple[bool, ...]) -> None:
    piece, _ = made(service(publishNotReadyAddresses=publish), one)
    (endpoint,) = piece["endpoints"]
    assert tuple(endpoint["conditions"].values()) == conditions
    assert endpoint["addresses"] == ["127.70.0.1"]


def test_pods_that_are_over_or_have_no_address_do_not_answer() -> None:
    homeless = pod("p2")
    del homeless["status"]["podIP"]
    piece, mirror = made(service(), pod("p1", phase="Succeeded"), homeless)
    assert piece["endpoints"] == []
    assert mirror["subsets"] == []


def test_a_named_target_port_is_the_number_the_pods_give_it() -> None:
    piece, mirror = made(service(), pod("p1"))
    assert piece["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert mirror["subsets"][0]["ports"] == [{"port": 8080, "protocol": "TCP"}]


def test_only_pods_of_this_subdomain_have_a_name_in_it() -> None:
    ours, others = pod("p1", hostname="db-0", subdomain="web"), pod("p2", hostname="db-0", subdomain="other")
    piece, _ = made(service(clusterIP="None"), ours, others)
    assert [endpoint.get("hostname") for endpoint in piece["endpoints"]] == ["db-0", None]


def test_old_clients_see_ready_and_unready_addresses_but_not_those_that_leave() -> None:
    _, mirror = made(service(), pod("p1"), pod("p2", ready=False), pod("p3", leaving=True))
    (subset,) = mirror["subsets"]
    assert [address["ip"] for address in subset["addresses"]] == ["127.70.0.1"]
    assert [address["ip"] for address in subset["notReadyAddresses"]] == ["127.70.0.2"]


def test_what_did_not_change_is_not_written() -> None:
    svc = service()
    piece, mirror = made(svc, pod("p1"))
    same = decide(svc, Observed((pod("p1"),), (piece,), mirror))
    assert (same.create, same.patch) == ([], [])
    moved = decide(svc, Observed((pod("p1", ready=False),), (piece,), mirror))
    assert [patch.resource.kind for patch in moved.patch] == ["EndpointSlice", "Endpoints"]


def many_pods(count: int, first: int = 0) -> list[Object]:
    return [pod(f"p{number:05}") for number in range(first, first + count)]


def stored(plan: Plan, before: Iterable[Object] = ()) -> list[Object]:
    """The slices after a plan was carried out."""
    slices = {piece["metadata"]["name"]: copy.deepcopy(piece) for piece in before}
    for delete in plan.delete:
        del slices[delete.name]
    for patch in plan.patch:
        if patch.resource.kind == "EndpointSlice":
            slices[patch.name].update(patch.patch)
    for obj in plan.create:
        if obj["kind"] == "EndpointSlice":
            obj["metadata"]["uid"] = obj["metadata"]["name"]
            slices[obj["metadata"]["name"]] = obj
    return list(slices.values())


def sizes(slices: list[Object]) -> list[int]:
    return sorted(len(piece["endpoints"]) for piece in slices)


def test_many_pods_are_spread_over_slices_and_each_stays_where_it_is() -> None:
    svc, pods = service(), many_pods(250)
    slices = stored(decide(svc, Observed(tuple(pods))))
    assert sizes(slices) == [50, SLICE_SIZE, SLICE_SIZE]
    pods[120]["status"]["conditions"][0]["status"] = "False"
    plan = decide(svc, Observed(tuple(pods), tuple(slices)))
    assert len([patch for patch in plan.patch if patch.resource.kind == "EndpointSlice"]) == 1
    fewer = stored(decide(svc, Observed(tuple(pods[60:]), tuple(slices))), slices)
    assert sizes(fewer) == [40, 50, SLICE_SIZE]
    refilled = stored(decide(svc, Observed((*pods[60:], *many_pods(130, 1000)), tuple(fewer))), fewer)
    assert sizes(refilled) == [20, SLICE_SIZE, SLICE_SIZE, SLICE_SIZE]


def test_slices_that_are_empty_go_all_but_one() -> None:
    svc = service()
    slices = stored(decide(svc, Observed(tuple(many_pods(150)))))
    left = stored(decide(svc, Observed((), tuple(slices))), slices)
    assert sizes(left) == [0]
    assert sizes(stored(decide(svc, Observed((), tuple(left))), left)) == [0]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sets(st.integers(0, 260)), min_size=1, max_size=6))
def test_whatever_comes_and_goes_every_pod_is_in_one_slice(rounds: list[set[int]]) -> None:
    svc = service()
    slices: list[Object] = []
    for present in rounds:
        pods = tuple(many_pods(1, number)[0] for number in present)
        slices = stored(decide(svc, Observed(pods, tuple(slices))), slices)
        uids = [endpoint["targetRef"]["uid"] for piece in slices for endpoint in piece["endpoints"]]
        assert sorted(uids) == sorted(one["metadata"]["uid"] for one in pods)
        assert max(sizes(slices)) <= SLICE_SIZE


def test_a_service_without_a_selector_is_written_by_hand() -> None:
    assert decide(service(selector=None), Observed()).create == []


def test_a_service_is_found_under_a_label_that_all_its_pods_have() -> None:
    svc = service(selector={"tier": "front", "app": "web"})
    (pair,) = by_selector(svc)
    labelled = pod("p1")
    labelled["metadata"]["labels"] = {"app": "web", "tier": "front", "more": "x"}
    assert pair in by_labels(labelled)
    assert list(by_selector(service(selector=None))) == []
