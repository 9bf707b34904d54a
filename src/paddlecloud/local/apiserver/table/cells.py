"""Cells of the built-in kinds that take more than reading a field.

Each is a function from (object, now) to a cell, or makes one. `columns.py` says where they appear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paddlecloud.kube.conditions import condition_of, has_condition
from paddlecloud.kube.resource import Object, controller_of
from paddlecloud.kube.times import moment_of
from paddlecloud.local.apiserver.table.humanize import NONE, UNSET, first_of_many, human_duration

CellFunction = Callable[[Object, float], Any]


def get(obj: Any, *path: str) -> Any:
    for part in path:
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def replicas_ready(obj: Object, now: float) -> str:
    desired = get(obj, "spec", "replicas")
    return f"{get(obj, 'status', 'readyReplicas') or 0}/{1 if desired is None else desired}"


def job_status(job: Object, now: float) -> str:
    for condition, word in (("Complete", "Complete"), ("Failed", "Failed")):
        if has_condition(job, condition):
            return word
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for condition in ("Suspended", "FailureTarget"):
        if has_condition(job, condition):
            return condition
    return "Running"


def job_completions(job: Object, now: float) -> str:
    succeeded = get(job, "status", "succeeded") or 0
    completions, parallelism = get(job, "spec", "completions"), get(job, "spec", "parallelism") or 1
    if completions is not None:
        return f"{succeeded}/{completions}"
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def job_duration(job: Object, now: float) -> str:
    start = moment_of(get(job, "status", "startTime"))
    if start is None:
        return ""
    end = moment_of(get(job, "status", "completionTime"))
    return human_duration((now if end is None else end) - start)


def last_schedule(cron_job: Object, now: float) -> str:
    moment = moment_of(get(cron_job, "status", "lastScheduleTime"))
    return NONE if moment is None else human_duration(now - moment)


def external_ip(service: Object, now: float) -> str:
    kind = get(service, "spec", "type") or "ClusterIP"
    if kind == "ExternalName":
        return get(service, "spec", "externalName") or NONE
    addresses = list(get(service, "spec", "externalIPs") or ())
    if kind == "LoadBalancer":
        ingress = get(service, "status", "loadBalancer", "ingress") or ()
        addresses = [i.get("ip") or i.get("hostname") or "" for i in ingress] + addresses
        return ",".join(addresses) or "<pending>"
    return ",".join(addresses) or NONE


def cluster_ip(service: Object, now: float) -> str:
    ips = get(service, "spec", "clusterIPs") or [get(service, "spec", "clusterIP")]
    return ips[0] or NONE


def service_ports(service: Object, now: float) -> str:
    ports = []
    for port in get(service, "spec", "ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node_port}/{port.get('protocol') or 'TCP'}")
    return ",".join(ports) or NONE


def _host_port(address: str, port: Any) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def endpoints(obj: Object, now: float) -> str:
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [address.get("ip") or "" for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        found += addresses if not ports else [_host_port(a, p.get("port")) for p in ports for a in addresses]
    return first_of_many(found)


def slice_ports(obj: Object, now: float) -> str:
    ports = obj.get("ports") or ()
    return first_of_many([str(p["port"]) if p.get("port") else p.get("name") or "*" for p in ports], empty=UNSET)


def slice_endpoints(obj: Object, now: float) -> str:
    return first_of_many([a for e in obj.get("endpoints") or () for a in e.get("addresses") or ()], empty=UNSET)


def ingress_class(ingress: Object, now: float) -> str:
    chosen = get(ingress, "spec", "ingressClassName")
    return NONE if chosen is None else str(chosen)


def ingress_hosts(ingress: Object, now: float) -> str:
    """The first three, and how many rules are not shown; a rule without a host is for all of them."""
    rules = get(ingress, "spec", "rules") or ()
    named: list[str] = []
    for rule in rules:
        if len(named) == 3:
            return f"{','.join(named)} + {len(rules) - 3} more..."
        if rule.get("host"):
            named.append(rule["host"])
    return ",".join(named) or "*"


def ingress_address(ingress: Object, now: float) -> str:
    entries = get(ingress, "status", "loadBalancer", "ingress") or ()
    found = {entry.get("ip") or entry.get("hostname") or "" for entry in entries} - {""}
    return ",".join(sorted(found))


def ingress_parameters(ingress_class: Object, now: float) -> str:
    found = get(ingress_class, "spec", "parameters")
    if found is None:
        return NONE
    group = f".{found['apiGroup']}" if found.get("apiGroup") is not None else ""
    return f"{found.get('kind')}{group}/{found.get('name')}"


def token_audiences(driver: Object, now: float) -> str:
    requests = get(driver, "spec", "tokenRequests")
    return UNSET if requests is None else ",".join(request.get("audience") or "" for request in requests)


def node_status(node: Object, now: float) -> str:
    ready = condition_of(node, "Ready")
    word = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if get(node, "spec", "unschedulable") else word


def node_roles(node: Object, now: float) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    roles = {key[len(prefix) :] for key in labels if key.startswith(prefix)} | {labels.get("kubernetes.io/role")}
    return ",".join(sorted(role for role in roles if role)) or NONE


def node_address(kind: str) -> CellFunction:
    def cell(node: Object, now: float) -> str:
        for address in get(node, "status", "addresses") or ():
            if address.get("type") == kind:
                return str(address.get("address"))
        return NONE

    return cell


_ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def access_modes(path: str) -> CellFunction:
    parts = path.split(".")

    def cell(obj: Object, now: float) -> str:
        modes = get(obj, *parts) or ()
        return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)

    return cell


def phase_or_terminating(obj: Object, now: float) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return get(obj, "status", "phase") or ""


def pv_claim(volume: Object, now: float) -> str:
    claim = get(volume, "spec", "claimRef")
    return f"{claim.get('namespace')}/{claim.get('name')}" if claim else ""


def when_bound(path: str) -> CellFunction:
    """Capacity and access modes of a claim are empty until it is bound."""
    parts = path.split(".")
    return lambda obj, now: (get(obj, *parts) or "") if get(obj, "spec", "volumeName") else ""


def storage_class_name(obj: Object, now: float) -> str:
    default = (obj["metadata"].get("annotations") or {}).get("storageclass.kubernetes.io/is-default-class") == "true"
    return f"{obj['metadata']['name']} (default)" if default else str(obj["metadata"]["name"])


def role_ref(binding: Object, now: float) -> str:
    return f"{get(binding, 'roleRef', 'kind')}/{get(binding, 'roleRef', 'name')}"


def subjects(kind: str) -> CellFunction:
    def cell(binding: Object, now: float) -> str:
        found = [s for s in binding.get("subjects") or () if s.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{s.get('namespace')}/{s.get('name')}" for s in found)
        return ", ".join(s.get("name") or "" for s in found)

    return cell


def quota(*, limits: bool) -> CellFunction:
    def cell(quota: Object, now: float) -> str:
        hard, used = get(quota, "status", "hard") or {}, get(quota, "status", "used") or {}
        names = sorted(name for name in hard if name.startswith("limits.") is limits)
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell


def budget(field: str) -> CellFunction:
    def cell(obj: Object, now: float) -> str:
        value = get(obj, "spec", field)
        return "N/A" if value is None else str(value)

    return cell


def event_times(event: Object) -> tuple[Any, Any]:
    """First and last occurrence, in whichever of the two generations of fields the event has them."""
    first = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    last = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or first
    return first, get(event, "series", "lastObservedTime") or last


def event_object(event: Object, now: float) -> str:
    target = event.get("involvedObject") or event.get("regarding") or {}
    kind = (target.get("kind") or "").lower()
    return f"{kind}/{target['name']}" if target.get("name") else kind


def event_source(event: Object, now: float) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    parts = [source.get("component"), source.get("host")]
    if not parts[0]:
        parts = [event.get("reportingComponent") or event.get("reportingController"), event.get("reportingInstance")]
    return ", ".join(part for part in parts if part)


def event_count(event: Object, now: float) -> int:
    return get(event, "series", "count") or event.get("count") or event.get("deprecatedCount") or 1


def event_field_path(event: Object, now: float) -> str:
    return get(event.get("involvedObject") or event.get("regarding"), "fieldPath") or ""


def event_message(event: Object, now: float) -> str:
    return (event.get("message") or event.get("note") or "").strip()


def controller(obj: Object, now: float) -> str:
    owner = controller_of(obj)
    return f"{owner['kind'].lower()}/{owner['name']}" if owner else NONE
