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
from paddlecloud.local.proxy.routes import Route, SocketAddress, routes_of
from paddlecloud.local.workloads.endpoint_controller import by_labels, by_selector
from paddlecloud.local.workloads.endpoints import SLICE_SIZE, Observed, decide

SELECTOR = {"app": "web"}


def service(**spec: Any) -> Object:
    body = {"selector": SELECTOR, "ports": [{"port": 80, "targetPort": "http"}], **spec}
    meta = {"name": "web", "namespace": "default", "uid": "s"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": body}


def pod(
    name: str, *, ready: bool = True, leaving: bool = False, phase: str = "Running", http: int = 8080, **spec: Any
) -> Object:
    meta: Object = {"name": name, "namespace": "default", "uid": f"u-{name}", "labels": SELECTOR}
    if leaving:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ports = [{"name": "http", "containerPort": http}]
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


def test_pods_that_give_a_name_different_ports_are_listed_with_their_own() -> None:
    svc, pods = service(), (pod("p1"), pod("p2", http=9090), pod("p3"))
    *slices, mirror = decide(svc, Observed(pods)).create
    listed = {
        endpoint["addresses"][0]: piece["ports"][0]["port"] for piece in slices for endpoint in piece["endpoints"]
    }
    assert listed == {"127.70.0.1": 8080, "127.70.0.2": 9090, "127.70.0.3": 8080}
    subsets = {s["ports"][0]["port"]: [address["ip"] for address in s["addresses"]] for s in mirror["subsets"]}
    assert subsets == {8080: ["127.70.0.1", "127.70.0.3"], 9090: ["127.70.0.2"]}
    assert routes_of({**svc, "spec": {**svc["spec"], "clusterIP": "127.40.0.1"}}, slices) == {
        SocketAddress("127.40.0.1", 80): Route((("127.70.0.1", 8080), ("127.70.0.3", 8080), ("127.70.0.2", 9090)))
    }


def test_a_pod_that_moves_to_another_port_moves_to_another_slice() -> None:
    svc = service()
    slices = stored(decide(svc, Observed((pod("p1"), pod("p2")))))
    both = stored(decide(svc, Observed((pod("p1"), pod("p2", http=9090)), tuple(slices))), slices)
    assert sorted((piece["ports"][0]["port"], len(piece["endpoints"])) for piece in both) == [(8080, 1), (9090, 1)]
    moved = decide(svc, Observed((pod("p1", http=9090), pod("p2", http=9090)), tuple(both)))
    assert [(piece["ports"][0]["port"], len(piece["endpoints"])) for piece in stored(moved, both)] == [(9090, 2)]


def test_when_the_target_port_of_a_service_changes_its_slice_follows() -> None:
    slices = stored(decide(service(), Observed((pod("p1"),))))
    plan = decide(service(ports=[{"port": 80, "targetPort": 81}]), Observed((pod("p1"),), tuple(slices)))
    (after,) = stored(plan, slices)
    assert (after["metadata"], after["ports"][0]["port"]) == (slices[0]["metadata"], 81)


def test_a_pod_without_the_named_port_is_no_address_of_it() -> None:
    svc = service(ports=[{"port": 80, "targetPort": "grpc"}])
    piece, mirror = made(svc, pod("p1"))
    assert (len(piece["endpoints"]), piece["ports"], mirror["subsets"]) == (1, [], [])
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [{"name": "grpc", "containerPort": 7070}]}
    piece, _ = made(svc, pod("p1", initContainers=[sidecar]))
    assert [port["port"] for port in piece["ports"]] == [7070]


def test_a_service_without_ports_lists_addresses_alone() -> None:
    _, mirror = made(service(clusterIP="None", ports=None), pod("p1"))
    (subset,) = mirror["subsets"]
    assert ([address["ip"] for address in subset["addresses"]], "ports" in subset) == (["127.70.0.1"], False)


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
@given(st.lists(st.dictionaries(st.integers(0, 260), st.sampled_from((80, 81, 82))), min_size=1, max_size=6))
def test_whatever_comes_and_goes_every_pod_is_in_one_slice_of_its_port(rounds: list[dict[int, int]]) -> None:
    svc = service()
    slices: list[Object] = []
    for present in rounds:
        pods = tuple(pod(f"p{number:05}", http=port) for number, port in present.items())
        slices = stored(decide(svc, Observed(pods, tuple(slices))), slices)
        uids = [
            (endpoint["targetRef"]["uid"], piece["ports"][0]["port"])
            for piece in slices
            for endpoint in piece["endpoints"]
        ]
        assert sorted(uids) == sorted((f"u-p{number:05}", port) for number, port in present.items())
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
