"""What Knative's webhook refuses, refused here with its words: an admission policy for the four kinds. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paddlecloud.kube.errors import BadRequest
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.knative.names import AUTOSCALING, GROUP, LABEL_RULE, is_label
from paddlecloud.local.knative.settings import NUMBERS, SPANS, camel, seconds

WEBHOOK = 'admission webhook "validation.webhook.serving.knative.dev" denied the request: validation failed: '
CLASSES = ("kpa.autoscaling.knative.dev", "hpa.autoscaling.knative.dev")
MOST_CONCURRENCY = 1000
LONGEST_TIMEOUT = 600
MOST_TARGETS = 1000
"""Of a route. Each tag has its own hosts in the tables of all gateways."""

_NUMBERS = {spelling: bounds for name, bounds in NUMBERS.items() for spelling in (name, camel(name))}


def judge(info: KindInfo, new: Object, old: Object | None, options: WriteOptions) -> None:
    """An admission policy."""
    if info.resource.group != GROUP:
        return
    problems = [*_name(new, old), *_CHECKS[info.kind](new, old)] if info.kind in _CHECKS else []
    if problems:
        raise BadRequest(WEBHOOK + "\n".join(problems))


def _name(new: Object, old: Object | None) -> Iterator[str]:
    """Hosts are made of names: one with dots could be that of a service in another namespace."""
    name = str(new["metadata"].get("name") or "")
    if old is None and name and not is_label(name):
        yield f"not a DNS 1035 label: [{name}: {LABEL_RULE}]: metadata.name"


def _service(new: Object, old: Object | None) -> Iterator[str]:
    yield from _configuration(new, old)
    yield from _route(new, old)


def _configuration(new: Object, old: Object | None) -> Iterator[str]:
    template = (new.get("spec") or {}).get("template") or {}
    meta, name = template.get("metadata") or {}, new["metadata"].get("name", "")
    own = meta.get("name", "")
    if own and not str(own).startswith(f"{name}-"):
        yield f'invalid value: "{own}" must have prefix "{name}-": spec.template.metadata.name'
    yield from _annotations(meta.get("annotations") or {}, "spec.template.metadata.annotations")
    yield from _pod(template.get("spec") or {}, "spec.template.spec")
    before = ((old or {}).get("spec") or {}).get("template")
    if before is not None and own and (before.get("metadata") or {}).get("name") == own and before != template:
        yield "Saw the following changes without a name change: spec.template.metadata.name"


def _route(new: Object, old: Object | None) -> Iterator[str]:
    traffic: list[Object] = (new.get("spec") or {}).get("traffic") or []
    changed = traffic != (((old or {}).get("spec") or {}).get("traffic") or [])
    if changed and len(traffic) > MOST_TARGETS:
        yield f"expected at most {MOST_TARGETS} targets, got {len(traffic)}: spec.traffic"
        return
    yield from _traffic(traffic)
    if changed:
        yield from _tags(traffic, str(new["metadata"].get("name") or ""))


def _tags(traffic: list[Object] | None, name: str) -> Iterator[str]:
    """A tag is the beginning of a host, `TAG-NAME.NAMESPACE`."""
    for index, target in enumerate(traffic or ()):
        tag = target.get("tag")
        if tag and not is_label(str(tag)):
            yield f"not a DNS 1035 label: [{tag}: {LABEL_RULE}]: spec.traffic[{index}].tag"
        elif tag and name and not is_label(f"{tag}-{name}"):
            yield f"not a DNS 1035 label: [{tag}-{name}: at most 63 characters]: spec.traffic[{index}].tag"


def _revision(new: Object, old: Object | None) -> Iterator[str]:
    yield from _pod(new.get("spec") or {}, "spec")
    annotations, before = ((obj or {}).get("metadata", {}).get("annotations") or {} for obj in (new, old))
    if annotations != before:
        yield from _annotations(annotations, "metadata.annotations")
    if old is not None and old.get("spec") != new.get("spec"):
        yield "Immutable fields changed: spec"


_CHECKS = {"Service": _service, "Configuration": _configuration, "Revision": _revision, "Route": _route}


def _pod(spec: Object, path: str) -> Iterator[str]:
    containers = spec.get("containers") or []
    if not containers:
        yield f"missing field(s): {path}.containers"
    for index, container in enumerate(containers):
        if not isinstance(container, Mapping) or not container.get("image"):
            yield f"missing field(s): {path}.containers[{index}].image"
    ports = [container for container in containers if isinstance(container, Mapping) and container.get("ports")]
    if len(ports) > 1 or any(len(container["ports"]) > 1 for container in ports):
        yield f"more than one container port is set: {path}.containers[*].ports"
    limit = spec.get("containerConcurrency") or 0
    if not 0 <= limit <= MOST_CONCURRENCY:
        yield f"expected 0 <= {limit} <= {MOST_CONCURRENCY}: {path}.containerConcurrency"
    timeout = spec.get("timeoutSeconds") or 0
    if not 0 <= timeout <= LONGEST_TIMEOUT:
        yield f"expected 0 <= {timeout} <= {LONGEST_TIMEOUT}: {path}.timeoutSeconds"


def _annotations(annotations: Mapping[str, str], path: str) -> Iterator[str]:
    prefix = f"{AUTOSCALING}/"
    found = {name.removeprefix(prefix): value for name, value in annotations.items() if name.startswith(prefix)}
    if (kind := found.get("class", CLASSES[0])) not in CLASSES:
        yield f"invalid value: {kind}: {path}[{prefix}class]"
    metric = found.get("metric", "concurrency")
    if kind == CLASSES[0] and metric not in ("concurrency", "rps"):
        yield f"invalid value: {metric}: {path}[{prefix}metric]"
    for name, value in found.items():
        if name in _NUMBERS and not _within(value, *_NUMBERS[name]):
            low, high = _NUMBERS[name]
            yield f"expected {low:g} <= {value} <= {high:g}: {path}[{prefix}{name}]"
        if name in SPANS and not _lasts(value, *SPANS[name]):
            low, high = SPANS[name]
            yield f"expected {low}s <= {value} <= {high}s: {path}[{prefix}{name}]"
    least, most = (_int(found.get(f"{end}-scale", found.get(f"{end}Scale", "0"))) for end in ("min", "max"))
    if most and least > most:
        yield f"max-scale={most} is less than min-scale={least}: {path}"


def _traffic(traffic: list[Object] | None) -> Iterator[str]:
    if not traffic:
        return
    total, tags = 0, set()
    for index, target in enumerate(traffic):
        percent = int(target.get("percent") or 0)
        total += percent
        if not 0 <= percent <= 100:
            yield f"expected 0 <= {percent} <= 100: spec.traffic[{index}].percent"
        if target.get("revisionName") and target.get("latestRevision"):
            name = target["revisionName"]
            yield f"may not set revisionName {name!r} when latestRevision is true: spec.traffic[{index}].latestRevision"
        if (tag := target.get("tag")) is not None:
            if tag in tags:
                yield f"Multiple definitions for {tag}: spec.traffic[{index}].tag"
            tags.add(tag)
    if total != 100:
        yield f"Traffic targets sum to {total}, want 100: spec.traffic"


def _within(text: str, low: float, high: float) -> bool:
    try:
        return low <= float(text) <= high
    except ValueError:
        return False


def _lasts(text: str, low: float, high: float) -> bool:
    try:
        span = seconds(text)
    except ValueError:
        return False
    return low <= span <= high and span == int(span)


def _int(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= 10 else 0
