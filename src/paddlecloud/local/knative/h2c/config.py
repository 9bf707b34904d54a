"""Envoy's configuration out of the gateway's table. Pure.

A revision is a cluster; its pods are its endpoints. One without pods has a single endpoint, the activator's socket,
which holds what comes until there is a pod. A host is a virtual host with a weighted choice of clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from paddlecloud.local.knative.gateway.http1 import EDGE_ONLY
from paddlecloud.local.knative.gateway.revisions import DEFAULT_TIMEOUT, MOST_WAITING
from paddlecloud.local.knative.gateway.sockets import HOST as ADDRESS
from paddlecloud.local.knative.gateway.stats import BOUNDS
from paddlecloud.local.knative.gateway.table import H2C_PORT, HOST, LOCAL, REVISION

Entries = Mapping[str, Any]
Config = dict[str, Any]

ADMIN = "admin"
CLUSTERS, LISTENERS = "clusters.json", "listeners.json"
SHARED = "routes"
"""Name of the routes of the port that all hosts share; those of a single route's own port are named after it."""
LISTENER = "h2c"
"""Name of the listener on the shared port, and the prefix of all listeners' statistics."""
BUFFER = 64 * 1024
"""Bytes kept per connection for a side that reads slowly."""
HEAD_TIMEOUT = 30
CONNECT_TIMEOUT = 5
LONGEST_REASON = 1000
"""Characters, of four bytes at most: Envoy takes 4096 bytes for a body that it makes itself."""
PLENTY = 1_000_000
"""More than Envoy will ever see: limits of its own that are not wanted here."""

_TYPE = "type.googleapis.com/envoy"


class EnvoyConfig(NamedTuple):
    """The configuration of Envoy for a table."""

    clusters: list[Config]
    routes: dict[str, Config]
    """By name: those of the shared port, and those of each port that a single route has."""
    listeners: list[Config]
    """On the ports of single routes."""
    pods: dict[str, Config]
    """The endpoints of each cluster."""


def bootstrap(folder: str, port: int) -> Config:
    """What Envoy starts with: the listener that routes share, and the files that everything else comes from.

    Sockets are named from Envoy's working directory, because their paths may not be longer than 107 bytes.
    """
    times = {"match": {"suffix": "upstream_rq_time"}, "buckets": [bound * 1000 for bound in BOUNDS]}
    return {
        "node": {"id": "gateway", "cluster": "paddlecloud"},
        "admin": {"address": {"pipe": {"path": ADMIN, "mode": 0o600}}},
        "stats_flush_on_admin": True,
        "stats_config": {"histogram_bucket_settings": [times]},
        "dynamic_resources": {"cds_config": _file(folder, CLUSTERS), "lds_config": _file(folder, LISTENERS)},
        "static_resources": {"listeners": [_listener(LISTENER, port, SHARED, folder=folder)]},
    }


def _listener(name: str, port: int, routes: str, *, folder: str) -> Config:
    counter = _extension(
        "envoy.filters.http.grpc_stats", "filters.http.grpc_stats.v3.FilterConfig", individual_method_stats_allowlist={}
    )
    router = _extension("envoy.filters.http.router", "filters.http.router.v3.Router")
    manager = _extension(
        "envoy.filters.network.http_connection_manager",
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=LISTENER,
        strip_any_host_port=True,
        early_header_mutation_extensions=[_without_forged_headers()],
        use_remote_address=True,
        generate_request_id=False,
        server_header_transformation="PASS_THROUGH",
        request_headers_timeout=_seconds(HEAD_TIMEOUT),
        stream_idle_timeout=_seconds(0),  # a route has its own
        http_filters=[counter, router],
        rds={"route_config_name": routes, "config_source": _file(folder, routes_file(routes))},
    )
    return {
        "name": name,
        "address": _socket(ADDRESS, port),
        "per_connection_buffer_limit_bytes": BUFFER,
        "filter_chains": [{"filters": [manager]}],
    }


def _without_forged_headers() -> Config:
    """Drops what only a proxy may set before Envoy looks at it. `use_remote_address` alone would append the client's
    address to an X-Forwarded-For of the client's own, and obey an X-Envoy header that comes from this machine."""
    return _extension(
        "envoy.http.early_header_mutation.header_mutation",
        "http.early_header_mutation.header_mutation.v3.HeaderMutation",
        mutations=[{"remove_on_match": {"key_matcher": {"safe_regex": {"regex": name}}}} for name in EDGE_ONLY],
    )


def pictured(entries: Entries, *, folder: str, number: Callable[[str], int]) -> EnvoyConfig:
    """The hosts that lead to at least one revision that uses HTTP/2, and all revisions that they lead to; the same
    by the ports that single routes have, where only hosts that name this machine are answered (`LOCAL`).

    `number` gives a revision its own number, for the names of its files.
    """
    revisions = {name.removeprefix(REVISION): value for name, value in entries.items() if name.startswith(REVISION)}
    hosts: dict[str, Mapping[str, int]] = {}
    ports: dict[int, Mapping[str, int]] = {}
    for name, targets in entries.items():
        if not name.startswith((HOST, H2C_PORT)):
            continue
        shares = {revision: share for revision, share in targets if revision in revisions}
        if not any(revisions[revision].get("h2c") for revision in shares):
            continue
        if name.startswith(HOST):
            hosts[name.removeprefix(HOST)] = shares
        else:
            ports[int(name.removeprefix(H2C_PORT))] = shares
    led_to = sorted({revision for shares in (*hosts.values(), *ports.values()) for revision in shares})
    shared = [_virtual_host(host, [host], shares, revisions) for host, shares in sorted(hosts.items())]
    single = {
        f"port-{port}": [_virtual_host("this machine", sorted(LOCAL), shares, revisions)]
        for port, shares in sorted(ports.items())
    }
    return EnvoyConfig(
        clusters=[_cluster(key, revisions[key], folder=folder, number=number(key)) for key in led_to],
        routes={
            name: {"@type": f"{_TYPE}.config.route.v3.RouteConfiguration", "name": name, "virtual_hosts": found}
            for name, found in {SHARED: shared, **single}.items()
        },
        listeners=[
            {"@type": f"{_TYPE}.config.listener.v3.Listener", **_listener(name, port, name, folder=folder)}
            for name, port in ((f"port-{port}", port) for port in sorted(ports))
        ],
        pods={key: _assignment(key, revisions[key], number=number(key)) for key in led_to},
    )


def routes_file(name: str) -> str:
    return f"{name}.json"


def pods_file(number: int) -> str:
    return f"pods-{number}.json"


def activator_socket(number: int) -> str:
    return f"wake-{number}"


def _virtual_host(name: str, hosts: list[str], shares: Mapping[str, int], revisions: Mapping[str, Config]) -> Config:
    failures = [_failure(revisions[revision]) for revision in shares]
    if all(failures):
        answer = {"status": 503, "body": {"inline_string": failures[0]}}  # of gRPC: UNAVAILABLE with this text
        return {"name": name, "domains": hosts, "routes": [{"match": {"prefix": "/"}, "direct_response": answer}]}
    patience = max(float(revisions[revision].get("timeout") or DEFAULT_TIMEOUT) for revision in shares)
    return {
        "name": name,
        "domains": hosts,
        "routes": [
            {
                "match": {"prefix": "/"},
                "route": {
                    "weighted_clusters": {
                        "clusters": [{"name": revision, "weight": share} for revision, share in shares.items()]
                    },
                    "timeout": _seconds(0),  # a stream may take its time, as long as something moves
                    "idle_timeout": _seconds(patience),
                    "retry_policy": {"retry_on": "connect-failure,refused-stream", "num_retries": 2},
                },
            }
        ],
    }


def _failure(revision: Config) -> str:
    """Why the revision will have no pods, if it is known; not longer than Envoy takes for a body."""
    return "" if revision.get("pods") else str(revision.get("failed") or "")[:LONGEST_REASON]


def _cluster(key: str, revision: Config, *, folder: str, number: int) -> Config:
    limit = int(revision.get("limit") or 0)
    streams = {"max_concurrent_streams": limit} if limit else {}
    protocol: Config = {"http2_protocol_options": streams} if revision.get("h2c") else {"http_protocol_options": {}}
    thresholds = {"max_connections": PLENTY, "max_requests": PLENTY, "max_pending_requests": MOST_WAITING}
    return {
        "@type": f"{_TYPE}.config.cluster.v3.Cluster",
        "name": key,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": _file(folder, pods_file(number))},
        "connect_timeout": _seconds(CONNECT_TIMEOUT),
        "lb_policy": "LEAST_REQUEST",
        "per_connection_buffer_limit_bytes": BUFFER,
        "circuit_breakers": {
            "thresholds": [thresholds],
            # One connection to a pod that may have so many requests at once: the others wait for their turn.
            **({"per_host_thresholds": [{"max_connections": 1}]} if limit else {}),
        },
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": f"{_TYPE}.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": protocol,
            }
        },
    }


def _assignment(key: str, revision: Config, *, number: int) -> Config:
    addresses = [_socket(ip, port) for ip, port, *_ in revision.get("pods") or ()]
    addresses = addresses or [{"pipe": {"path": activator_socket(number)}}]
    return {
        "@type": f"{_TYPE}.config.endpoint.v3.ClusterLoadAssignment",
        "cluster_name": key,
        "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}} for address in addresses]}],
    }


def _extension(name: str, kind: str, **fields: Any) -> Config:
    return {"name": name, "typed_config": {"@type": f"{_TYPE}.extensions.{kind}", **fields}}


def _socket(ip: str, port: int) -> Config:
    return {"socket_address": {"address": ip, "port_value": port}}


def _file(folder: str, name: str) -> Config:
    return {"resource_api_version": "V3", "path_config_source": {"path": f"{folder}/{name}"}}


def _seconds(number: float) -> str:
    return f"{number:g}s"
