"""Endpoints by hand as slices: one for each list of ports and family of addresses, none where they are not wanted."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.endpoint_mirroring import Observed, decide

SERVICE: Object = {"metadata": {"name": "s", "namespace": "d"}, "spec": {"ports": [{"port": 80}]}}


def endpoints(*subsets: Object, **meta: Any) -> Object:
    metadata = {"name": "s", "namespace": "d", "uid": "u", **meta}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": list(subsets)}


def subset(*ips: str, port: int = 80) -> Object:
    return {"addresses": [{"ip": ip, "hostname": "h"} for ip in ips], "ports": [{"port": port}]}


def stored(plan_created: list[Object]) -> tuple[Object, ...]:
    return tuple({**piece, "metadata": {**piece["metadata"], "uid": "x"}} for piece in plan_created)


def test_each_list_of_ports_and_family_of_addresses_is_a_slice() -> None:
    plan = decide(endpoints(subset("10.0.0.1", "fd00::1"), subset("10.0.0.2", port=81)), Observed(SERVICE, ()))
    shown = [
        (piece["addressType"], [e["addresses"] for e in piece["endpoints"]], piece["ports"][0]["port"])
        for piece in plan.create
    ]
    assert shown == [("IPv4", [["10.0.0.1"]], 80), ("IPv6", [["fd00::1"]], 80), ("IPv4", [["10.0.0.2"]], 81)]
    assert plan.create[0]["endpoints"][0]["hostname"] == "h"
    assert len({piece["metadata"]["name"] for piece in plan.create}) == 3


def test_what_is_written_already_is_not_written_again() -> None:
    made = decide(endpoints(subset("10.0.0.1")), Observed(SERVICE, ())).create
    again = decide(endpoints(subset("10.0.0.1")), Observed(SERVICE, stored(made)))
    assert (again.create, again.patch, again.delete) == ([], [], [])
    changed = decide(endpoints(subset("10.0.0.9")), Observed(SERVICE, stored(made)))
    assert [patch.name for patch in changed.patch] == [made[0]["metadata"]["name"]]


@pytest.mark.parametrize(
    ("service", "meta"),
    [
        (None, {}),
        ({**SERVICE, "spec": {"selector": {"a": "b"}}}, {}),
        (SERVICE, {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}),
        (SERVICE, {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}),
        (SERVICE, {"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    ],
)
def test_slices_go_where_endpoints_are_no_longer_mirrored(service: Object | None, meta: dict[str, Any]) -> None:
    made = decide(endpoints(subset("10.0.0.1")), Observed(SERVICE, ())).create
    plan = decide(endpoints(subset("10.0.0.1"), **meta), Observed(service, stored(made)))
    assert (plan.create, [delete.name for delete in plan.delete]) == ([], [made[0]["metadata"]["name"]])
