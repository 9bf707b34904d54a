"""What Kubernetes refuses in one container: names, ports, environment, mounts, amounts, probes and hooks."""

from __future__ import annotations

from typing import Any

from paddlecloud.kube import quantity
from paddlecloud.kube.name_rules import qualified_name_problems
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.validation import fieldref
from paddlecloud.local.apiserver.builtin.validation.rules import (
    key_problems,
    not_negative,
    one_of,
    port,
    port_name_problems,
    port_or_name,
    problems,
    unique,
)
from paddlecloud.local.apiserver.objects.metadata import label_name_problems
from paddlecloud.local.apiserver.schema.causes import Cause, duplicate, forbidden, invalid, not_found, required

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage", "storage")


def container_rules(path: str, container: Object, volumes: set[Any], taken: set[str]) -> list[Cause]:
    found: list[Cause] = []
    name = container.get("name", "")
    if name in taken:
        found.append(duplicate(f"{path}.name", name))
    elif problem := label_name_problems(name):
        found += problems(f"{path}.name", name, problem)
    taken.add(name)
    image = container.get("image", "")
    if not image:
        found.append(required(f"{path}.image"))
    elif image != image.strip():
        found.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    found += _ports(f"{path}.ports", container.get("ports") or [])
    found += _environment(path, container)
    found += _mounts(f"{path}.volumeMounts", container.get("volumeMounts") or [], volumes)
    found += resources(f"{path}.resources", container.get("resources") or {})
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe) is not None:
            found += _probe(f"{path}.{probe}", container[probe], probe)
    for hook in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(hook)
        if handler is not None:
            found += _handler(f"{path}.lifecycle.{hook}", handler)
    return found


def restart_rules(path: str, kind: str, container: Object) -> list[Cause]:
    """Only an init container may restart by itself, and only one that does is watched by probes."""
    policy = container.get("restartPolicy")
    if kind != "initContainers":
        detail = "may not be set for non-init containers"
        return [forbidden(f"{path}.restartPolicy", detail)] if policy is not None else []
    if policy == "Always":
        return []
    found = [invalid(f"{path}.restartPolicy", policy, "must be 'Always'")] if policy is not None else []
    watched = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
    detail = "may not be set for init containers without restartPolicy=Always"
    return found + [forbidden(f"{path}.{name}", detail) for name in watched if container.get(name) is not None]


def _ports(path: str, ports: list[Object]) -> list[Cause]:
    found: list[Cause] = []
    for index, entry in enumerate(ports):
        name = entry.get("name")
        if name:
            found += problems(f"{path}[{index}].name", name, port_name_problems(name))
        found += port(f"{path}[{index}].containerPort", entry.get("containerPort", 0))
        if entry.get("hostPort"):
            found += port(f"{path}[{index}].hostPort", entry["hostPort"])
    named = ((index, entry["name"]) for index, entry in enumerate(ports) if entry.get("name"))
    return found + unique(f"{path}[{{}}].name", named)


def _environment(path: str, container: Object) -> list[Cause]:
    found: list[Cause] = []
    for index, entry in enumerate(container.get("env") or ()):
        place = f"{path}.env[{index}]"
        name = entry.get("name", "")
        if not name:
            found.append(required(f"{place}.name"))
        else:
            found += _variable_name(f"{place}.name", name)
        source = entry.get("valueFrom")
        if source is not None:
            found += _env_source(f"{place}.valueFrom", source, has_value=bool(entry.get("value")))
    for index, entry in enumerate(container.get("envFrom") or ()):
        place = f"{path}.envFrom[{index}]"
        found += _variable_name(f"{place}.prefix", entry.get("prefix") or "")
        sources = one_of(entry, ("configMapRef", "secretRef"))
        if not sources:
            found.append(invalid(place, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(sources) > 1:
            found.append(invalid(place, "", "may not have more than one field specified at a time"))
        elif not entry[sources[0]].get("name"):
            found.append(required(f"{place}.{sources[0]}.name"))
    return found


def _variable_name(path: str, name: str) -> list[Cause]:
    if name.isascii() and name.isprintable() and "=" not in name:
        return []
    detail = "a valid environment variable name must consist only of printable ASCII characters other than '='"
    return [invalid(path, name, detail)]


def _env_source(path: str, source: Object, *, has_value: bool) -> list[Cause]:
    sources = one_of(source, _ENV_SOURCES)
    if not sources:
        choices = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        return [invalid(path, "", f"must specify one of: {choices}")]
    if has_value:
        return [invalid(path, "", "may not be specified when `value` is not empty")]
    if len(sources) > 1:
        return [invalid(path, "", "may not have more than one field specified at a time")]
    kind, found = sources[0], source[sources[0]]
    if kind in ("configMapKeyRef", "secretKeyRef"):
        missing = [required(f"{path}.{kind}.{field}") for field in ("name", "key") if not found.get(field)]
        return missing or problems(f"{path}.{kind}.key", found["key"], key_problems(found["key"]))
    return fieldref.variable(f"{path}.{kind}", found) if kind == "fieldRef" else []


def _mounts(path: str, mounts: list[Object], volumes: set[Any]) -> list[Cause]:
    found: list[Cause] = []
    places: set[str] = set()
    for index, mount in enumerate(mounts):
        name, where = mount.get("name"), mount.get("mountPath")
        if not name:
            found.append(required(f"{path}[{index}].name"))
        elif name not in volumes:
            found.append(not_found(f"{path}[{index}].name", name))
        if not where:
            found.append(required(f"{path}[{index}].mountPath"))
        elif where in places:
            found.append(invalid(f"{path}[{index}].mountPath", where, "must be unique"))
        else:
            places.add(where)
        for field in ("subPath", "subPathExpr"):
            found += relative_path(f"{path}[{index}].{field}", mount.get(field) or "")
        if mount.get("subPath") and mount.get("subPathExpr"):
            found.append(
                invalid(
                    f"{path}[{index}].subPathExpr",
                    mount["subPathExpr"],
                    "subPathExpr and subPath are mutually exclusive",
                )
            )
    return found


def relative_path(field: str, value: str) -> list[Cause]:
    if value.startswith("/"):
        return [invalid(field, value, "must be a relative path")]
    return [invalid(field, value, "must not contain '..'")] if ".." in value.split("/") else []


def resources(path: str, declared: Object) -> list[Cause]:
    """Amounts are not negative, requests fit into limits, and devices are whole and limited to what is requested."""
    limits, requests = declared.get("limits") or {}, declared.get("requests") or {}
    found: list[Cause] = []
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            field = f"{path}.{kind}[{name}]"
            if problem := qualified_name_problems(name):
                found += problems(f"{path}.{kind}", name, problem)
            elif quantity.parse(amount) < 0:
                found.append(invalid(field, amount, "must be greater than or equal to 0"))
            elif "/" in name and quantity.parse(amount) % quantity.ONE:
                found.append(invalid(field, amount, "must be an integer"))
            elif "/" not in name and name not in _STANDARD_RESOURCES and not name.startswith("hugepages-"):
                found.append(invalid(field, name, "must be a standard resource for containers"))
    for name, amount in requests.items():
        limit = limits.get(name)
        field = f"{path}.requests"
        if limit is None:
            if "/" in name:
                found.append(required(f"{path}.limits[{name}]", "Limit must be set for non overcommitable resources"))
        elif quantity.compare(amount, limit) > 0:
            found.append(invalid(field, amount, f"must be less than or equal to {name} limit of {limit}"))
        elif "/" in name and quantity.compare(amount, limit) != 0:
            found.append(invalid(field, amount, f"must be equal to {name} limit of {limit}"))
    return found


def _probe(path: str, probe: Object, kind: str) -> list[Cause]:
    found = _handler(path, probe)
    numbers = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    found += not_negative(probe, path, *numbers)
    if kind != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        found.append(invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    return found


def _handler(path: str, handler: Object) -> list[Cause]:
    kinds = one_of(handler, _HANDLERS)
    if not kinds:
        return [required(path, "must specify a handler type")]
    found = [forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in kinds[1:]]
    kind, action = kinds[0], handler[kinds[0]]
    if kind == "exec" and not action.get("command"):
        found.append(required(f"{path}.exec.command"))
    if kind in ("httpGet", "tcpSocket", "grpc") and "port" in action:
        found += port_or_name(f"{path}.{kind}.port", action["port"])
    return found
