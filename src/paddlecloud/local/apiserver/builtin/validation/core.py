"""What Kubernetes refuses in services, configuration, storage and the other plain kinds of the core group."""

from __future__ import annotations

import base64
from itertools import islice
from typing import Any

from paddlecloud.kube import quantity
from paddlecloud.kube.name_rules import qualified_name_problems, subdomain_problems
from paddlecloud.kube.quota_names import COUNTED, NOT_STANDARD, is_quota_name
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.types import DEFINITIONS
from paddlecloud.local.apiserver.builtin.validation.rules import (
    IMMUTABLE,
    immutable,
    in_range,
    is_address,
    key_problems,
    labels,
    one_of,
    port,
    port_or_name,
    problems,
    unique,
)
from paddlecloud.local.apiserver.objects.metadata import finalizer_causes, label_name_problems
from paddlecloud.local.apiserver.schema.causes import (
    MAX_CAUSES,
    Cause,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
)

_MAX_DATA = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"


# --- services -------------------------------------------------------------------------------------------------------


def validate_service(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    kind, address = spec.get("type", "ClusterIP"), spec.get("clusterIP", "")
    found = _service_ports(spec, optional=kind == "ExternalName" or address == "None")
    found += labels("spec.selector", spec.get("selector") or {})
    if kind == "ExternalName":
        name = spec.get("externalName", "").removesuffix(".")
        found += (
            problems("spec.externalName", name, subdomain_problems(name)) if name else [required("spec.externalName")]
        )
        if address:
            found.append(forbidden("spec.clusterIP", "may not be set for ExternalName services"))
    elif address not in ("", "None") and not is_address(address):
        found.append(invalid("spec.clusterIP", address, "must be empty, 'None', or a valid IP address"))
    if kind != "ClusterIP" and address == "None":
        detail = f"may not be set to 'None' for {kind} services"
        found.append(invalid("spec.clusterIP", address, detail))
    for index, given in enumerate(spec.get("externalIPs") or ()):
        if not is_address(given):
            detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            found.append(invalid(f"spec.externalIPs[{index}]", given, detail))
    if old is not None:
        before = old.get("spec") or {}
        moved = kind == "ExternalName" or before.get("type") == "ExternalName"
        if before.get("clusterIP") and not moved and address != before["clusterIP"]:
            found.append(invalid("spec.clusterIP", address, IMMUTABLE))
    return found


def _service_ports(spec: Object, *, optional: bool) -> list[Cause]:
    ports = spec.get("ports") or []
    if not ports:
        return [] if optional else [required("spec.ports")]
    found: list[Cause] = []
    for index, entry in enumerate(ports):
        place, name = f"spec.ports[{index}]", entry.get("name", "")
        if name:
            found += problems(f"{place}.name", name, label_name_problems(name))
        elif len(ports) > 1:
            found.append(required(f"{place}.name"))
        found += port(f"{place}.port", entry.get("port", 0))
        found += port_or_name(f"{place}.targetPort", entry.get("targetPort", entry.get("port", 0)))
        if entry.get("nodePort"):
            if spec.get("type", "ClusterIP") == "ClusterIP":
                detail = "may not be used when `type` is 'ClusterIP'"
                found.append(forbidden(f"{place}.nodePort", detail))
            found += in_range(f"{place}.nodePort", entry["nodePort"], low=1, high=65535)
    named = ((index, entry["name"]) for index, entry in enumerate(ports) if entry.get("name"))
    found += unique("spec.ports[{}].name", named)
    taken: set[tuple[Any, Any]] = set()
    for index, entry in enumerate(ports):
        key = (entry.get("protocol", "TCP"), entry.get("port"))
        if key in taken:
            found.append(duplicate(f"spec.ports[{index}]", {"protocol": key[0], "port": key[1]}))
        taken.add(key)
    return found


# --- configuration --------------------------------------------------------------------------------------------------


def validate_namespace(new: Object, _: Object | None) -> list[Cause]:
    finalizers = (new.get("spec") or {}).get("finalizers") or []
    return list(islice(finalizer_causes("spec.finalizers", finalizers), MAX_CAUSES))


def validate_config_map(new: Object, old: Object | None) -> list[Cause]:
    text, binary = new.get("data") or {}, new.get("binaryData") or {}
    found = _keys("data", text) + _keys("binaryData", binary)
    found += [invalid(f"data[{key}]", key, "duplicate of key present in binaryData") for key in text if key in binary]
    size = sum(len(value.encode()) for value in text.values()) + sum(len(value) * 3 // 4 for value in binary.values())
    if size > _MAX_DATA:
        found.append(too_long("", _MAX_DATA))
    return found + (_frozen(new, old, "data", "binaryData") if old is not None else [])


_REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def validate_secret(new: Object, old: Object | None) -> list[Cause]:
    data, kind = new.get("data") or {}, new.get("type", "Opaque")
    found = _keys("data", data)
    found += [required(f"data[{key}]") for key in _REQUIRED_KEYS.get(kind, ()) if key not in data]
    annotations = (new.get("metadata") or {}).get("annotations") or {}
    account = "kubernetes.io/service-account.name"
    if kind == "kubernetes.io/service-account-token" and not annotations.get(account):
        found.append(required(f"metadata.annotations[{account}]"))
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        found += [required("data[username]"), required("data[password]")]
    if sum(len(base64.b64decode(value)) for value in data.values()) > _MAX_DATA:
        found.append(too_long("data", _MAX_DATA))
    if old is not None:
        found += immutable(new, old, "", "type") + _frozen(new, old, "data")
    return found


def _keys(field: str, data: Object) -> list[Cause]:
    found = (cause for key in data if (wrong := key_problems(key)) for cause in problems(f"{field}[{key}]", key, wrong))
    return list(islice(found, MAX_CAUSES))


def _frozen(new: Object, old: Object, *fields: str) -> list[Cause]:
    if not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [forbidden("immutable", _FROZEN)]
    return found + [forbidden(name, _FROZEN) for name in fields if (new.get(name) or {}) != (old.get(name) or {})]


# --- storage --------------------------------------------------------------------------------------------------------


def validate_volume(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    found = [] if spec.get("accessModes") else [required("spec.accessModes")]
    capacity = spec.get("capacity") or {}
    if "storage" not in capacity:
        found.append(required("spec.capacity"))
    elif quantity.parse(capacity["storage"]) <= 0:
        found.append(invalid("spec.capacity[storage]", capacity["storage"], "must be greater than zero"))
    found += volume_source("spec", spec)
    if old is not None:
        before = old.get("spec") or {}
        if any(spec.get(name) != before.get(name) for name in _volume_sources()):
            detail = "spec.persistentvolumesource is immutable after creation"
            found.append(forbidden("spec.persistentvolumesource", detail))
        found += immutable(spec, before, "spec", "volumeMode")
    return found


def volume_source(path: str, spec: Object) -> list[Cause]:
    """A volume has one type."""
    sources = one_of(spec, _volume_sources())
    if not sources:
        return [required(path, "must specify a volume type")]
    return [forbidden(f"{path}.{name}", "may not specify more than 1 volume type") for name in sources[1:]]


def _volume_sources() -> list[str]:
    fields = DEFINITIONS["io.k8s.api.core.v1.PersistentVolumeSpec"]["properties"]
    return [name for name, schema in fields.items() if str(schema.get("$ref", "")).endswith("VolumeSource")]


def validate_claim(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    modes = spec.get("accessModes") or []
    found = [] if modes else [required("spec.accessModes", "at least 1 access mode is required")]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        found.append(forbidden("spec.accessModes", detail))
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        found.append(required("spec.resources[storage]"))
    elif quantity.parse(size) <= 0:
        found.append(invalid("spec.resources[storage]", size, "must be greater than zero"))
    if storage_class := spec.get("storageClassName"):
        found += problems("spec.storageClassName", storage_class, subdomain_problems(storage_class))
    if old is not None and not found:
        found = _claim_update(spec, old)
    return found


def _claim_update(spec: Object, old: Object) -> list[Cause]:
    before = old.get("spec") or {}
    free = {"volumeName"} if not before.get("volumeName") else set()
    if before.get("storageClassName") is None:
        free.add("storageClassName")
    if (old.get("status") or {}).get("phase") == "Bound":
        free |= {"resources", "volumeAttributesClassName"}
    found = []
    if any(spec.get(name) != before.get(name) for name in {*spec, *before} - free):
        detail = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        found.append(forbidden("spec", detail))
    was = ((before.get("resources") or {}).get("requests") or {}).get("storage", "0")
    if quantity.compare(spec["resources"]["requests"]["storage"], was) < 0:
        field = "spec.resources.requests.storage"
        found.append(forbidden(field, "field can not be less than previous value"))
    return found


# --- the rest -------------------------------------------------------------------------------------------------------


def validate_node(new: Object, old: Object | None) -> list[Cause]:
    taints = (new.get("spec") or {}).get("taints") or []
    found: list[Cause] = []
    for index, taint in enumerate(taints):
        key = taint.get("key", "")
        found += problems(f"spec.taints[{index}].key", key, qualified_name_problems(key))
    pairs = ((index, (taint.get("key"), taint.get("effect"))) for index, taint in enumerate(taints))
    return found + unique("spec.taints[{}]", pairs)


def validate_event(new: Object, old: Object | None) -> list[Cause]:
    namespace = (new.get("metadata") or {}).get("namespace")
    place = "regarding" if new.get("apiVersion") == "events.k8s.io/v1" else "involvedObject"
    about = (new.get(place) or {}).get("namespace")
    if about and about != namespace:
        return [invalid(f"{place}.namespace", about, "does not match event.namespace")]
    if not about and namespace != "default" and new.get(place):  # cluster-wide objects have their events in default
        return [invalid(f"{place}.namespace", "", "does not match event.namespace")]
    return _new_event(new) if old is None and new.get("apiVersion") == "events.k8s.io/v1" else []


_EVENT_TEXTS = ("reportingController", "reportingInstance", "action", "reason")
_LEGACY_EVENT_FIELDS = ("deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount")


def _new_event(event: Object) -> list[Cause]:
    """Only events of the new group must be complete; the old one took anything, and still does."""
    found = [] if event.get("eventTime") else [required("eventTime")]
    for field in _EVENT_TEXTS:
        if not event.get(field):
            found.append(required(field))
        elif len(event[field]) > 128:
            found.append(invalid(field, "", "can have at most 128 characters"))
    if event.get("reportingController"):
        controller = event["reportingController"]
        found += problems("reportingController", controller, qualified_name_problems(controller))
    if event.get("type") not in ("Normal", "Warning"):
        found.append(invalid("type", event.get("type", ""), "has invalid value"))
    if len(event.get("note") or "") > 1024:
        found.append(invalid("note", "", "can have at most 1024 characters"))
    found += [forbidden(field, "needs to be unset") for field in _LEGACY_EVENT_FIELDS if event.get(field)]
    series = event.get("series")
    if series is not None and (series.get("count") or 0) < 2:
        found.append(invalid("series.count", series.get("count", 0), "should be at least 2"))
    if series is not None and not series.get("lastObservedTime"):
        found.append(required("series.lastObservedTime"))
    return found


def validate_quota(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    found: list[Cause] = []
    for name, amount in (spec.get("hard") or {}).items():
        found += problems("spec.hard", name, qualified_name_problems(name))
        if not is_quota_name(name):
            found.append(invalid(f"spec.hard[{name}]", name, NOT_STANDARD))
        if quantity.parse(amount) < 0:
            found.append(invalid(f"spec.hard[{name}]", amount, "must be greater than or equal to 0"))
        if (name in COUNTED or name.startswith("count/")) and quantity.parse(amount) % quantity.ONE:
            found.append(invalid(f"spec.hard[{name}]", amount, "must be an integer"))
    if old is not None:
        found += immutable(spec, old.get("spec") or {}, "spec", "scopes")
    return found


_ORDERED_LIMITS = (
    ("min", "max"),
    ("min", "default"),
    ("min", "defaultRequest"),
    ("defaultRequest", "default"),
    ("default", "max"),
)


def validate_limit_range(new: Object, old: Object | None) -> list[Cause]:
    found: list[Cause] = []
    for index, item in enumerate((new.get("spec") or {}).get("limits") or ()):
        for low, high in _ORDERED_LIMITS:
            for name in set(item.get(low) or ()) & set(item.get(high) or ()):
                small, large = item[low][name], item[high][name]
                if quantity.compare(small, large) > 0:
                    detail = f"{low} value {small} is greater than {high} value {large}"
                    found.append(invalid(f"spec.limits[{index}].{low}[{name}]", small, detail))
    return found


def validate_endpoints(new: Object, old: Object | None) -> list[Cause]:
    found: list[Cause] = []
    for index, subset in enumerate(new.get("subsets") or ()):
        for kind in ("addresses", "notReadyAddresses"):
            for at, address in enumerate(subset.get(kind) or ()):
                if not is_address(address.get("ip", "")):
                    field = f"subsets[{index}].{kind}[{at}].ip"
                    found.append(invalid(field, address.get("ip", ""), "must be a valid IP address"))
        for at, entry in enumerate(subset.get("ports") or ()):
            found += port(f"subsets[{index}].ports[{at}].port", entry.get("port", 0))
    return found
