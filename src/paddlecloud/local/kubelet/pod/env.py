"""The environment of a container: values, references, `envFrom`, and `$(VAR)` in values, command and arguments.

Pure but for the two lookups it is given. A reference that cannot be followed raises `ContainerConfigError` with the
text that the kubelet of Kubernetes gives: it becomes the message of CreateContainerConfigError, and the pod is retried
when the object exists.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from paddlecloud.kube import quantity
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod import exec_limits
from paddlecloud.local.kubelet.pod.errors import ContainerConfigError, MissingObject
from paddlecloud.local.kubelet.pod.exec_limits import Room

Lookup = Callable[[str], Object | None]
"""A ConfigMap or Secret of the pod's namespace by name."""


SHOWN = 63
"""Characters of a name in a message."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the downward API may give a container about where it runs."""

    pod_ip: str = ""
    host_ip: str = ""
    node_name: str = ""
    allocatable: Mapping[str, str] | None = None
    """Of the node: what an absent limit means."""


def build_env(
    pod: Object,
    container: Object,
    *,
    facts: Facts,
    configmap: Lookup,
    secret: Lookup,
    base: Mapping[str, str] | None = None,
    room: Room,
) -> dict[str, str]:
    """`base` is what the image and the platform set; the pod's own values win over it.

    All of it is taken out of `room`, which the arguments share.
    """
    env: dict[str, str] = {}
    for name, value in (base or {}).items():
        env[name] = room.take(_variable(name), value, name=name)
    for source in container.get("envFrom") or ():
        for name, value in _from_source(source, configmap, secret):
            env[name] = room.take(_variable(name), value, name=name)
    known = dict(env)  # $(VAR) sees what came before, platform variables included
    for entry in container.get("env") or ():
        name = entry["name"]
        found: str | None
        if entry.get("valueFrom"):
            found = _from_reference(entry["valueFrom"], pod, container, facts, configmap, secret)
            if found is None:
                continue
        else:
            found = expand(str(entry.get("value") or ""), known, what=_variable(name))
        env[name] = known[name] = room.take(_variable(name), found, name=name)
    return env


def _variable(name: str) -> str:
    return f"environment variable {name[:SHOWN]}"


def _from_source(source: Object, configmap: Lookup, secret: Lookup) -> Iterator[tuple[str, str]]:
    """One variable after the other: nothing is decoded that no longer fits."""
    prefix = source.get("prefix", "")
    if ref := source.get("configMapRef"):
        found, kind, read = configmap(ref["name"]), "configmap", _as_it_is
    else:
        ref = source["secretRef"]
        found, kind, read = secret(ref["name"]), "secret", _decode
    if found is None:
        if ref.get("optional"):
            return
        raise MissingObject(f'{kind} "{ref["name"]}" not found')
    for key, value in (found.get("data") or {}).items():
        yield prefix + key, read(value)


def _from_reference(
    source: Object, pod: Object, container: Object, facts: Facts, configmap: Lookup, secret: Lookup
) -> str | None:
    """None leaves the variable out: an optional reference to nothing."""
    if ref := source.get("fieldRef"):
        return field_value(pod, ref["fieldPath"], facts)
    if ref := source.get("resourceFieldRef"):
        return resource_value(pod, container, ref, facts)
    if ref := source.get("configMapKeyRef"):
        return _key(ref, configmap(ref["name"]), "configmap", lambda obj, key: (obj.get("data") or {}).get(key))
    if ref := source.get("secretKeyRef"):
        return _key(ref, secret(ref["name"]), "secret", _secret_key)
    raise ContainerConfigError(f"a value from {', '.join(source)} is not served by this platform")


def _secret_key(obj: Object, key: str) -> str | None:
    encoded = (obj.get("data") or {}).get(key)
    return None if encoded is None else _decode(encoded)


def _key(ref: Object, found: Object | None, kind: str, read: Callable[[Object, str], str | None]) -> str | None:
    value = read(found, ref["key"]) if found is not None else None
    if value is not None or ref.get("optional"):
        return value
    if found is None:
        raise MissingObject(f'{kind} "{ref["name"]}" not found')
    namespace = found["metadata"].get("namespace", "")
    kinds = {"configmap": "ConfigMap", "secret": "Secret"}
    raise MissingObject(f"couldn't find key {ref['key']} in {kinds[kind]} {namespace}/{ref['name']}")


def _as_it_is(value: str) -> str:
    return value


def _decode(value: str) -> str:
    if len(value) > 2 * exec_limits.ONE:
        raise exec_limits.too_long("the value of a Secret for an environment variable")
    return base64.b64decode(value).decode(errors="surrogateescape")


_SUBSCRIPT = re.compile(r"^metadata\.(labels|annotations)\['([^']+)'\]$")


def field_value(pod: Object, path: str, facts: Facts) -> str:
    """What `fieldRef` may name; the whole of labels and annotations in the form of the downward API's files."""
    meta, spec = pod["metadata"], pod["spec"]
    if match := _SUBSCRIPT.match(path):
        return str((meta.get(match[1]) or {}).get(match[2], ""))
    simple: dict[str, Callable[[], object]] = {
        "metadata.name": lambda: meta["name"],
        "metadata.namespace": lambda: meta.get("namespace", ""),
        "metadata.uid": lambda: meta["uid"],
        "metadata.labels": lambda: _pairs(meta.get("labels")),
        "metadata.annotations": lambda: _pairs(meta.get("annotations")),
        "spec.nodeName": lambda: spec.get("nodeName") or facts.node_name,
        "spec.serviceAccountName": lambda: spec.get("serviceAccountName") or "default",
        "status.podIP": lambda: facts.pod_ip,
        "status.podIPs": lambda: facts.pod_ip,
        "status.hostIP": lambda: facts.host_ip,
        "status.hostIPs": lambda: facts.host_ip,
    }
    if path not in simple:
        raise ContainerConfigError(f"fieldPath {path} is not supported")
    return str(simple[path]())


def _pairs(values: Mapping[str, str] | None) -> str:
    return "\n".join(f'{key}="{_quote(value)}"' for key, value in sorted((values or {}).items()))


def _quote(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource_value(pod: Object, container: Object, ref: Object, facts: Facts) -> str:
    """`limits.cpu` and its kin. An absent limit is what the node can give, as in Kubernetes; an absent request is 0."""
    if other := ref.get("containerName"):
        everyone = [*(pod["spec"].get("initContainers") or ()), *(pod["spec"].get("containers") or ())]
        container = next((c for c in everyone if c["name"] == other), container)
    side, _, name = str(ref["resource"]).partition(".")
    if side not in ("limits", "requests") or not name:
        raise ContainerConfigError(f"resource {ref['resource']} is not supported")
    resources = container.get("resources") or {}
    value = (resources.get(side) or {}).get(name)
    if value is None:
        fallback = resources.get("limits") if side == "requests" else facts.allocatable
        value = (fallback or {}).get(name, "0")
    divisor = quantity.parse(ref.get("divisor") or "1") or quantity.ONE
    return str(-(-quantity.parse(value) // divisor))


_REFERENCE = re.compile(r"\$(\$|\(([^()]*)\))")


def expand(text: str, env: Mapping[str, str], *, what: str = "a text", limit: int = exec_limits.ONE) -> str:
    """`$(NAME)` becomes the value, `$$` a dollar sign, an unknown name stays as it is written.

    Raises `ContainerConfigError` as soon as the result is longer than `limit`; `what` is what the message calls it.
    """
    left = limit

    def replace(match: re.Match[str]) -> str:
        nonlocal left
        value = "$" if match[1] == "$" else env.get(match[2], match[0])
        left -= len(value)
        if left < 0:
            raise exec_limits.too_long(what, limit)
        return value

    result = _REFERENCE.sub(replace, text)
    if len(result) > limit:
        raise exec_limits.too_long(what, limit)
    return result


def expand_all(texts: Sequence[str], env: Mapping[str, str], *, what: str, room: Room) -> list[str]:
    """The arguments of one program; `what` is the field that they are in."""
    return [
        room.take(f"{what}[{index}]", expand(text, env, what=f"{what}[{index}]")) for index, text in enumerate(texts)
    ]
