"""Endpoints: who answers behind a name, in slices and, for old clients, in Endpoints."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.endpoints import Observed, by_labels, by_selector, decide

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
    same = decide(svc, Observed((pod("p1"),), piece, mirror))
    assert (same.create, same.patch) == ([], [])
    moved = decide(svc, Observed((pod("p1", ready=False),), piece, mirror))
    assert [patch.resource.kind for patch in moved.patch] == ["EndpointSlice", "Endpoints"]


def test_a_service_without_a_selector_is_written_by_hand() -> None:
    assert decide(service(selector=None), Observed()).create == []


def test_a_service_is_found_under_a_label_that_all_its_pods_have() -> None:
    svc = service(selector={"tier": "front", "app": "web"})
    (pair,) = by_selector(svc)
    labelled = pod("p1")
    labelled["metadata"]["labels"] = {"app": "web", "tier": "front", "more": "x"}
    assert pair in by_labels(labelled)
    assert list(by_selector(service(selector=None))) == []
