"""LimitRanges: defaults and bounds for the resources of single pods, containers and claims of a namespace.

Pure functions. `apply_defaults` fills in what a new pod leaves open, `pod_violations` and `claim_violations` say what
is out of bounds, in the words of Kubernetes. Totals over a namespace are the business of quotas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from paddlecloud.kube import errors
from paddlecloud.kube.quantity import ONE, Amount, Amounts, parse, total, written
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.policy.quota import container_amounts

ANNOTATION = "kubernetes.io/limit-ranger"


def _items(ranges: Iterable[Object], kind: str) -> Iterator[Object]:
    for one in ranges:
        for item in (one.get("spec") or {}).get("limits") or ():
            if item.get("type") == kind:
                yield item


def _containers(pod: Object) -> list[Object]:
    spec = pod.get("spec") or {}
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


# --- defaults ---


def apply_defaults(ranges: Iterable[Object], pod: Object) -> None:
    """Give containers the default requests and limits of the namespace, and say so in an annotation."""
    limits: dict[str, Any] = {}
    requests: dict[str, Any] = {}
    for item in _items(ranges, "Container"):
        limits |= item.get("default") or {}
        requests |= {**(item.get("default") or {}), **(item.get("defaultRequest") or {})}
    notes: list[str] = []
    for container in _containers(pod):
        own = container.get("resources") or {}
        added_requests = _fill(own, "requests", requests, but_not=own.get("limits") or {})
        added_limits = _fill(own, "limits", limits)
        if own:
            container["resources"] = own
        notes += _notes("request", added_requests, container) + _notes("limit", added_limits, container)
    if notes:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"


def _fill(own: Object, part: str, defaults: dict[str, Any], but_not: Iterable[str] = ()) -> list[str]:
    """A container with its own limit requests as much, so no default request applies to it."""
    have = own.get(part) or {}
    added = sorted(name for name in defaults if name not in have and name not in but_not)
    if added:
        own[part] = {**have, **{name: defaults[name] for name in added}}
    return added


def _notes(what: str, added: list[str], container: Object) -> list[str]:
    return [f"{', '.join(added)} {what} for container {container.get('name', '')}"] if added else []


# --- bounds ---


def check_pod(ranges: Iterable[Object], pod: Object) -> None:
    _refuse("pods", pod, pod_violations(list(ranges), pod))


def check_claim(ranges: Iterable[Object], claim: Object) -> None:
    _refuse("persistentvolumeclaims", claim, claim_violations(ranges, claim))


def pod_violations(ranges: list[Object], pod: Object) -> list[str]:
    containers = _containers(pod)
    found: list[str] = []
    for item in _items(ranges, "Container"):
        for container in containers:
            found += _violations(item, container_amounts(container, "requests"), container_amounts(container, "limits"))
    whole = [total(container_amounts(c, part) for c in containers) for part in ("requests", "limits")]
    for item in _items(ranges, "Pod"):
        found += _violations(item, whole[0], whole[1])
    return found


def claim_violations(ranges: Iterable[Object], claim: Object) -> list[str]:
    resources = (claim.get("spec") or {}).get("resources") or {}
    requests = {name: parse(value) for name, value in (resources.get("requests") or {}).items()}
    found: list[str] = []
    for item in _items(ranges, "PersistentVolumeClaim"):
        # Claims have no limits: both bounds are put to the request.
        found += _violations({**item, "maxLimitRequestRatio": {}}, requests, requests, what="request")
    return found


def _violations(item: Object, requests: Amounts, limits: Amounts, *, what: str = "limit") -> list[str]:
    found: list[str] = []
    kind = item.get("type")
    for name, bound in sorted((item.get("min") or {}).items()):
        head = f"minimum {name} usage per {kind} is {bound}"
        if name not in requests:
            found.append(f"{head}.  No request is specified")
        else:
            found += _beyond(head, name, {"request": requests, what: limits}, below=parse(bound))
    for name, bound in sorted((item.get("max") or {}).items()):
        head = f"maximum {name} usage per {kind} is {bound}"
        if name not in limits:
            found.append(f"{head}.  No {what} is specified")
        else:
            found += _beyond(head, name, {what: limits, "request": requests}, above=parse(bound))
    for name, bound in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        head = f"{name} max limit to request ratio per {kind} is {bound}, but"
        request, limit = requests.get(name, 0), limits.get(name, 0)
        if not request:
            found.append(f"{head} no request is specified or request is 0")
        elif not limit:
            found.append(f"{head} no limit is specified or limit is 0")
        elif limit * ONE > parse(bound) * request:
            found.append(f"{head} provided ratio is {limit / request:f}")
    return found


def _beyond(
    head: str, name: str, given: dict[str, Amounts], *, below: Amount | None = None, above: Amount | None = None
) -> list[str]:
    """The first of the given amounts that is out of bounds."""
    for what, of in given.items():
        amount = of.get(name)
        if amount is None:
            continue
        if (below is not None and amount < below) or (above is not None and amount > above):
            return [f"{head}, but {what} is {written({name: amount})[name]}"]
    return []


def _refuse(plural: str, obj: Object, found: list[str]) -> None:
    if not found:
        return
    name = obj["metadata"].get("name", "")
    why = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
    raise errors.forbidden(plural, name, why)
