"""Envoy's configuration for a table, and what is made of its counts."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.local.knative.gateway.stats import BOUNDS
from paddlecloud.local.knative.h2c.config import SHARED, EnvoyConfig, pictured
from paddlecloud.local.knative.h2c.statistics import Totals, read, report

NUMBERS = {"ns/grpc": 1, "ns/web": 2, "ns/next": 3}
GRPC = {"pods": [["127.1.2.3", 9000, "u", None]], "limit": 0, "timeout": 30, "h2c": True}
WEB = {"pods": [["127.1.2.4", 8080, "u", None]], "limit": 0, "timeout": 60}


def picture(**entries: Any) -> EnvoyConfig:
    table = {name.replace("__", ":"): value for name, value in entries.items()}
    return pictured(table, folder="/f", number=lambda key: NUMBERS[key])


def hosts(made: EnvoyConfig) -> dict[str, dict[str, int]]:
    found = {}
    for host in made.routes[SHARED]["virtual_hosts"]:
        clusters = host["routes"][0]["route"]["weighted_clusters"]["clusters"]
        found[host["name"]] = {cluster["name"]: cluster["weight"] for cluster in clusters}
    return found


def test_only_hosts_that_lead_to_http2_are_envoys() -> None:
    entries = {"host:a": [["ns/grpc", 100]], "host:b": [["ns/web", 100]], "path:ns/a": [["ns/grpc", 100]]}
    made = picture(**entries, **{"rev:ns/grpc": GRPC, "rev:ns/web": WEB})
    assert hosts(made) == {"a": {"ns/grpc": 100}}
    assert made.pods.keys() == {"ns/grpc"}


def test_a_host_shared_with_http1_leads_to_both_each_in_its_own_protocol() -> None:
    made = picture(**{"host:a": [["ns/grpc", 90], ["ns/web", 10]], "rev:ns/grpc": GRPC, "rev:ns/web": WEB})
    assert hosts(made) == {"a": {"ns/grpc": 90, "ns/web": 10}}
    protocols = {
        cluster["name"]: next(
            iter(next(iter(cluster["typed_extension_protocol_options"].values()))["explicit_http_config"])
        )
        for cluster in made.clusters
    }
    assert protocols == {"ns/grpc": "http2_protocol_options", "ns/web": "http_protocol_options"}
    (host,) = made.routes[SHARED]["virtual_hosts"]
    assert host["routes"][0]["route"]["idle_timeout"] == "60s", "the more patient of the two"


def test_a_port_of_a_single_route_gets_a_listener_that_answers_names_of_this_machine_alone() -> None:
    entries = {"host:a": [["ns/grpc", 100]], "port-h2c:4711": [["ns/grpc", 100]], "port:4712": [["ns/web", 100]]}
    made = picture(**entries, **{"rev:ns/grpc": GRPC, "rev:ns/web": WEB})
    (listener,) = made.listeners
    assert listener["address"] == {"socket_address": {"address": "127.0.0.1", "port_value": 4711}}
    (host,) = made.routes[listener["name"]]["virtual_hosts"]
    assert set(host["domains"]) == {"localhost", "127.0.0.1", "[::1]"}


def test_a_revision_that_was_not_published_yet_gets_nothing() -> None:
    made = picture(**{"host:a": [["ns/grpc", 50], ["ns/next", 50]], "rev:ns/grpc": GRPC})
    assert hosts(made) == {"a": {"ns/grpc": 50}}


def test_without_pods_the_activator_is_the_only_endpoint() -> None:
    entries = {"host:a": [["ns/grpc", 100]], "rev:ns/grpc": {**GRPC, "pods": []}}
    (endpoint,) = picture(**entries).pods["ns/grpc"]["endpoints"][0]["lb_endpoints"]
    assert endpoint["endpoint"]["address"] == {"pipe": {"path": "wake-1"}}


STATISTICS = """\
# TYPE envoy_cluster_upstream_rq counter
envoy_cluster_grpc_0{envoy_cluster_name="ns/r"} 6
envoy_cluster_grpc_3{envoy_cluster_name="ns/r"} 1
envoy_cluster_grpc_14{envoy_cluster_name="ns/r"} 2
envoy_cluster_upstream_rq{envoy_response_code="200",envoy_cluster_name="ns/r"} 9
envoy_cluster_upstream_rq{envoy_response_code="503",envoy_cluster_name="ns/r"} 1
envoy_cluster_upstream_rq_active{envoy_cluster_name="ns/r"} 2
envoy_cluster_upstream_rq_pending_active{envoy_cluster_name="ns/r"} 1
envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name="ns/r",le="1"} 4
envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name="ns/r",le="2.5"} 8
envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name="ns/r",le="+Inf"} 10
envoy_cluster_upstream_rq_time_sum{envoy_cluster_name="ns/r"} 1500.25
"""


def test_envoys_figures_are_read() -> None:
    (totals,) = read(STATISTICS).values()
    assert (totals.inside, totals.codes, totals.failed_calls) == (3, {"200": 9, "503": 1}, 2)
    assert (totals.latencies[0], totals.latencies[1], totals.latencies[-1]) == (4, 8, 10)
    assert totals.seconds == pytest.approx(1.50025)


def latencies(*upto: int) -> list[int]:
    return [*upto, *[upto[-1]] * (len(BOUNDS) + 1 - len(upto))]


@pytest.mark.parametrize(
    ("now", "before", "wanted"),
    [
        (Totals(), Totals(), None),
        (Totals(inside=2), Totals(inside=2), {"inside": 2, "concurrency": 2.0}),
        (
            Totals(codes={"200": 10}, latencies=latencies(4, 10), seconds=3.0),
            Totals(codes={"200": 4}, latencies=latencies(2, 4), seconds=1.0),
            {"codes": {"200": 6}, "concurrency": 1.0, "seconds": 2.0, "latencies": [2, 4] + [0] * (len(BOUNDS) - 1)},
        ),
        (
            Totals(codes={"200": 1}, latencies=latencies(0, 0, 1), seconds=600.0),
            Totals(inside=1),
            {"concurrency": 1.0},  # one long stream was never more than one
        ),
        (Totals(codes={"200": 5}, failed_calls=2), Totals(), {"codes": {"200": 3, "500": 2}}),
        (Totals(codes={"200": 5}, failed_calls=1), Totals(codes={"200": 5}), {"codes": {"500": 1}}),
        (Totals(latencies=latencies(1), seconds=0.001), Totals(), {"codes": {}, "seconds": 0.001}),
    ],
)
def test_a_report_shows_what_happened_since_the_last(now: Totals, before: Totals, wanted: dict[str, Any]) -> None:
    reported = report(now, before, span=2.0)
    if wanted is None:
        assert reported is None
    else:
        assert reported is not None
        assert {name: reported[name] for name in wanted} == wanted
