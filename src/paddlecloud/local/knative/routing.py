"""From objects to the gateway's table: which entries a Route and a Revision make. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.knative.gateway.table import HOST, PATH, REVISION
from paddlecloud.local.knative.names import hosts_of, key
from paddlecloud.local.knative.revision import DEFAULT_TIMEOUT, port_of
from paddlecloud.local.workloads.pods import is_active, is_ready

Entries = dict[str, Any]


def route_entries(route: Object) -> Entries:
    """Hosts and paths of a route, and of each of its tags."""
    meta = route["metadata"]
    namespace, name = meta["namespace"], meta["name"]
    traffic = (route.get("status") or {}).get("traffic") or ()
    shares: dict[str, int] = {}
    tags: dict[str, dict[str, int]] = {}
    for target in traffic:
        revision = f"{namespace}/{target['revisionName']}"
        if share := int(target.get("percent") or 0):
            shares[revision] = shares.get(revision, 0) + share
        if tag := target.get("tag"):
            tags.setdefault(tag, {})[revision] = 100
    entries: Entries = {}
    for label, targets in ((name, shares), *((f"{tag}-{name}", found) for tag, found in tags.items())):
        if targets:
            value = [list(item) for item in targets.items()]
            entries |= {f"{HOST}{host}": value for host in hosts_of(label, namespace)}
            entries[f"{PATH}{namespace}/{label}"] = value
    return entries


def revision_entry(revision: Object, pods: Iterable[Object], slots: Callable[[str, int], str]) -> Entries:
    """The pods that take requests. `slots` gives the pipe by which gateways keep a pod's limit together."""
    spec = revision.get("spec") or {}
    limit = int(spec.get("containerConcurrency") or 0)
    port = port_of(revision)
    found = sorted((pod for pod in pods if takes_requests(pod)), key=lambda pod: str(pod["metadata"]["uid"]))
    body = {
        "pods": [
            [pod["status"]["podIP"], port, uid, slots(uid, limit) if limit else None]
            for pod in found
            if (uid := str(pod["metadata"]["uid"]))
        ],
        "limit": limit,
        "timeout": int(spec.get("timeoutSeconds") or DEFAULT_TIMEOUT),
    }
    return {f"{REVISION}{key(revision)}": body}


def takes_requests(pod: Object) -> bool:
    return is_active(pod) and is_ready(pod) and bool((pod.get("status") or {}).get("podIP"))


def routed(routes: Iterable[Object]) -> set[str]:
    """Keys of the revisions that a route leads to, or is asked to lead to."""
    found = set()
    for route in routes:
        namespace = route["metadata"]["namespace"]
        for part in ("spec", "status"):
            for target in (route.get(part) or {}).get("traffic") or ():
                if target.get("revisionName"):
                    found.add(f"{namespace}/{target['revisionName']}")
    return found
