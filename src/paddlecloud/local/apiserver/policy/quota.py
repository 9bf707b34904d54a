"""ResourceQuota arithmetic: what an object uses, which quotas count it, and whether there is room for it.

Pure functions over plain objects. Collections are named as in the store, `group/plural`. Who keeps the running totals,
and how two writes at the same moment do not both get the last place, is `quota_keeper.py`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from paddlecloud.kube import errors
from paddlecloud.kube.quantity import ONE, Amounts, amounts, largest, minus, parse, total, written
from paddlecloud.kube.resource import Object

PODS, CLAIMS, SERVICES = "/pods", "/persistentvolumeclaims", "/services"
_COUNTED_BY_PLURAL = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
_STANDARD = ("cpu", "memory", "ephemeral-storage")  # what may be named without `requests.`
_COMPUTE = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_PER_CLASS = ".storageclass.storage.k8s.io/"
_ENDED = ("Succeeded", "Failed")

# --- usage ---


def usage_of(collection: str, obj: Object) -> Amounts:
    """Everything the object counts for, under every name a quota may give it."""
    group, _, plural = collection.partition("/")
    used: Amounts = {f"count/{plural}.{group}" if group else f"count/{plural}": ONE}
    if collection == PODS:
        used |= _pod_usage(obj)
    elif collection == CLAIMS:
        used |= _claim_usage(obj)
    elif collection == SERVICES:
        used |= _service_usage(obj)
    elif not group and plural in _COUNTED_BY_PLURAL:
        used[plural] = ONE
    return used


def collection_of(name: str) -> str:
    """Whose objects a name of a quota's `hard` counts."""
    if name.startswith("count/"):
        plural, _, group = name.removeprefix("count/").partition(".")
        return f"{group}/{plural}"
    if name in ("persistentvolumeclaims", "requests.storage") or _PER_CLASS in name:
        return CLAIMS
    if name.partition(".")[0] == "services":
        return SERVICES
    return f"/{name}" if name in _COUNTED_BY_PLURAL else PODS


def _pod_usage(pod: Object) -> Amounts:
    """A pod that has ended frees everything but its place in the store (`count/pods`)."""
    if (pod.get("status") or {}).get("phase") in _ENDED:
        return {}
    spec = pod.get("spec") or {}
    used: Amounts = {"pods": ONE}
    for name, amount in pod_amounts(spec, "requests").items():
        used[f"requests.{name}"] = amount
        if name in _STANDARD or name.startswith("hugepages-"):
            used[name] = amount
    for name, amount in pod_amounts(spec, "limits").items():
        used[f"limits.{name}"] = amount
    return used


def pod_amounts(spec: Object, part: str) -> Amounts:
    """Requests or limits of a pod at its hungriest moment: all containers, or an init container before them."""
    containers = [container_amounts(c, part) for c in spec.get("containers") or ()]
    sidecars: list[Amounts] = []
    peaks: list[Amounts] = []
    for container in spec.get("initContainers") or ():
        own = container_amounts(container, part)
        if container.get("restartPolicy") == "Always":
            sidecars.append(own)
            own = {}
        peaks.append(total([*sidecars, own]))
    needed = largest([total([*containers, *sidecars]), *peaks])
    overhead = amounts(spec.get("overhead"))
    # What is not limited stays so: the overhead of the sandbox is no limit by itself.
    return total([needed, overhead if part == "requests" else {n: a for n, a in overhead.items() if n in needed}])


def container_amounts(container: Object, part: str) -> Amounts:
    """Requests that are not given equal the limits."""
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    return amounts(limits if part == "limits" else {**limits, **(resources.get("requests") or {})})


def _claim_usage(claim: Object) -> Amounts:
    spec = claim.get("spec") or {}
    storage = parse(((spec.get("resources") or {}).get("requests") or {}).get("storage", 0))
    used = {"persistentvolumeclaims": ONE, "requests.storage": storage}
    name = spec.get("storageClassName")
    if name:
        used |= {f"{name}{_PER_CLASS}{key}": amount for key, amount in used.items()}
    return used


def _service_usage(service: Object) -> Amounts:
    spec = service.get("spec") or {}
    ports, kind = spec.get("ports") or (), spec.get("type") or "ClusterIP"
    used = {"services": ONE}
    if kind == "NodePort":
        used["services.nodeports"] = len(ports) * ONE
    elif kind == "LoadBalancer":
        used["services.loadbalancers"] = ONE
        used["services.nodeports"] = sum(bool(port.get("nodePort")) for port in ports) * ONE
    return used


# --- scopes ---


def applies(quota: Object, collection: str, obj: Object) -> bool:
    """Whether the object is of those the quota is about. Scopes select pods; a scoped quota counts nothing else."""
    spec = quota.get("spec") or {}
    selectors = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    selectors += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    if not selectors:
        return True
    return collection == PODS and all(_in_scope(selector, obj) for selector in selectors)


def _in_scope(selector: Mapping[str, Any], pod: Object) -> bool:
    scope, operator = selector.get("scopeName"), selector.get("operator") or "Exists"
    spec = pod.get("spec") or {}
    if scope == "PriorityClass":
        name, values = spec.get("priorityClassName") or "", selector.get("values") or ()
        return {
            "In": bool(name) and name in values,
            "NotIn": name not in values,
            "Exists": bool(name),
            "DoesNotExist": not name,
        }.get(operator, False)
    test = _SCOPES.get(str(scope))
    return test is not None and test(spec) is (operator == "Exists")


def _best_effort(spec: Object) -> bool:
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return not any(any(container_amounts(container, "requests").values()) for container in containers)


def _crosses_namespaces(spec: Object) -> bool:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        required = terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        for term in (*required, *(one.get("podAffinityTerm") or {} for one in preferred)):
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False


_SCOPES: dict[str, Callable[[Object], bool]] = {
    "Terminating": lambda spec: spec.get("activeDeadlineSeconds") is not None,
    "NotTerminating": lambda spec: spec.get("activeDeadlineSeconds") is None,
    "BestEffort": _best_effort,
    "NotBestEffort": lambda spec: not _best_effort(spec),
    "CrossNamespacePodAffinity": _crosses_namespaces,
}


# --- admission ---


def hard_of(quota: Object) -> Amounts:
    return amounts((quota.get("spec") or {}).get("hard"))


def counted(quota: Object, collection: str, obj: Object | None) -> Amounts:
    """What the object counts for in this quota, by the names the quota limits."""
    if obj is None or not applies(quota, collection, obj):
        return {}
    hard = (quota.get("spec") or {}).get("hard") or {}
    return {name: amount for name, amount in usage_of(collection, obj).items() if name in hard}


def check(
    quotas: Iterable[Object],
    collection: str,
    new: Object,
    old: Object | None = None,
    *,
    used: Callable[[Object], Amounts],
) -> None:
    """Raise `Forbidden` if a quota has no room for the write. `used` gives what a quota's objects use so far.

    Only what grows is checked: a namespace over its quota may still shrink, and relabelling is always free.
    """
    for quota in quotas:
        grown = minus(counted(quota, collection, new), counted(quota, collection, old))
        grown = {name: amount for name, amount in grown.items() if amount > 0}
        if old is None and collection == PODS and applies(quota, collection, new):
            _check_specified(quota, new)
        if not grown:
            continue
        hard, taken = hard_of(quota), used(quota)
        over = sorted(name for name in grown if taken.get(name, 0) + grown[name] > hard[name])
        if over:
            shown = [_listed({name: of.get(name, 0) for name in over}) for of in (grown, taken, hard)]
            name = quota["metadata"]["name"]
            raise _refused(
                collection, new, f"exceeded quota: {name}, requested: {shown[0]}, used: {shown[1]}, limited: {shown[2]}"
            )


def _check_specified(quota: Object, pod: Object) -> None:
    """A limit on CPU or memory means something only if every container says how much it takes."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    spec = pod.get("spec") or {}
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    missing: list[str] = []
    for name in sorted(set(_COMPUTE) & set(hard)):
        part, _, resource = name.rpartition(".")
        lacking = [c.get("name", "") for c in containers if resource not in container_amounts(c, part or "requests")]
        if lacking:
            missing.append(f"{name} for: {','.join(sorted(lacking))}")
    if missing:
        name = quota["metadata"]["name"]
        raise _refused(PODS, pod, f"failed quota: {name}: must specify {'; '.join(missing)}")


def _listed(values: Amounts) -> str:
    return ",".join(f"{name}={text}" for name, text in sorted(written(values).items()))


def _refused(collection: str, obj: Object, why: str) -> errors.Forbidden:
    group, _, plural = collection.partition("/")
    return errors.forbidden(plural, obj["metadata"].get("name", ""), why, group=group)


# --- status ---


def status_of(quota: Object, used: Amounts) -> Object:
    """`status` of the quota: the limits as given and what is used of each."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    return {"hard": dict(hard), "used": written({name: used.get(name, 0) for name in hard})}
