"""From objects to the gateway's table: which entries a Route and a Revision make. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from paddlecloud.kube.resource import Key, Object
from paddlecloud.local.knative.gateway.table import H2C_PORT, HOST, PATH, PORT, REVISION
from paddlecloud.local.knative.names import REVISION as REVISION_LABEL
from paddlecloud.local.knative.names import hosts_of, is_label, key
from paddlecloud.local.knative.revision import DEFAULT_TIMEOUT, lasting_failure, port_of, uses_h2c
from paddlecloud.local.workloads.pods import is_active, is_ready

Entries = dict[str, Any]
NO_PORTS: Mapping[str, int] = {}
LEADS_TO, NAMED, OF_REVISION = "leads to", "named", "revision"
"""Indexes: of routes by the revisions they lead to and by what their spec names, of pods by their revision."""


MOST_PORTS = 50
"""Ports of one route: its own and those of its first tags. A route may have thousands of tags."""


def labels_of(route: Object) -> list[str]:
    """Of what has its own port, the route and its first tags: the first labels of their hosts. Those that are none
    are left out."""
    name = route["metadata"]["name"]
    targets = [*_targets(route, "spec"), *_targets(route, "status")]
    labels = (name, *(f"{target['tag']}-{name}" for target in targets if target.get("tag")))
    return list(dict.fromkeys(filter(is_label, labels)))[:MOST_PORTS]


def route_entries(route: Object, ports: Mapping[str, int] = NO_PORTS, *, h2c: bool = False) -> Entries:
    """Hosts and paths of a route, and of each of its tags; none where a label of a host would not be one. Also the
    ports that they have in `ports`, by `namespace/label`; with `h2c` it is Envoy that listens there.

    A route that never led anywhere leads to the revisions that its spec names: its URL is in its status already, and
    requests wait there for the first pod, or get the reason why there is none."""
    meta = route["metadata"]
    namespace, name = meta["namespace"], meta["name"]
    traffic = _targets(route, "status") or [target for target in _targets(route, "spec") if target.get("revisionName")]
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
        if targets and is_label(label):
            value = [list(item) for item in targets.items()]
            entries |= {f"{HOST}{host}": value for host in hosts_of(label, namespace)}
            entries[f"{PATH}{namespace}/{label}"] = value
            if port := ports.get(f"{namespace}/{label}"):
                entries[f"{H2C_PORT if h2c else PORT}{port}"] = value
    return entries


def revision_entry(revision: Object, pods: Iterable[Object], slots: Callable[[str, int], str]) -> Entries:
    """The pods that take requests, or why there will be none. `slots` gives the pipe by which gateways keep a pod's
    limit together."""
    pods = list(pods)
    failure = lasting_failure(pods)
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
        **({"h2c": True} if uses_h2c(revision) else {}),
        **({"failed": f"{failure.reason}: {failure.message}"} if failure else {}),
    }
    return {f"{REVISION}{key(revision)}": body}


def takes_requests(pod: Object) -> bool:
    return is_active(pod) and is_ready(pod) and bool((pod.get("status") or {}).get("podIP"))


def revisions_of(route: Object) -> Iterable[str]:
    """An index: keys of the revisions that a route leads to, or is asked to lead to."""
    namespace = route["metadata"]["namespace"]
    targets = [*_targets(route, "spec"), *_targets(route, "status")]
    return {f"{namespace}/{target['revisionName']}" for target in targets if target.get("revisionName")}


def named_in(route: Object) -> Iterable[str]:
    """An index: keys of the revisions and configurations that a route's spec names."""
    namespace = route["metadata"]["namespace"]
    names = {target.get(field) for target in _targets(route, "spec") for field in ("revisionName", "configurationName")}
    return {f"{namespace}/{name}" for name in names if name}


def revision_keys(pod: Object) -> Iterable[Key]:
    """The revision of a pod."""
    name = (pod["metadata"].get("labels") or {}).get(REVISION_LABEL)
    if name:
        yield Key(pod["metadata"].get("namespace", ""), name)


def revision_of(pod: Object) -> Iterable[str]:
    """An index: the key of a pod's revision."""
    return [path_of(key) for key in revision_keys(pod)]


def path_of(key: Key) -> str:
    """How gateways and autoscaler know a revision."""
    return f"{key.namespace}/{key.name}"


def is_split(route: Object) -> bool:
    """Whether several revisions share its traffic."""
    return len({target.get("revisionName") for target in _targets(route, "status")}) > 1


def _targets(route: Object, part: str) -> list[Object]:
    return list((route.get(part) or {}).get("traffic") or ())
