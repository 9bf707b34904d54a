"""What Kubernetes refuses in the kinds of storage drivers: pkg/apis/storage/validation of it."""

from __future__ import annotations

from typing import Any

from paddlecloud.kube import quantity
from paddlecloud.kube.name_rules import qualified_name_problems, subdomain_problems
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.validation.core import volume_source
from paddlecloud.local.apiserver.builtin.validation.rules import (
    IMMUTABLE,
    NOT_NEGATIVE,
    immutable,
    label_selector,
    not_negative,
    problems,
    unique,
)
from paddlecloud.local.apiserver.schema.causes import (
    Cause,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)

_MODES = ("Persistent", "Ephemeral")
_LONGEST_DRIVER = 63
_LONGEST_NODE_ID = 256
_LARGEST_METADATA = 256 * 1024
_LONGEST_ERROR = 1024
_SHORTEST_TOKEN = 600


def validate_driver(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    requests = list(enumerate(spec.get("tokenRequests") or ()))
    audiences = ((index, request.get("audience", "")) for index, request in requests)
    modes = (mode for mode in spec.get("volumeLifecycleModes") or () if mode not in _MODES)
    found = [not_supported("spec.volumeLifecycleModes", mode, _MODES) for mode in modes]
    found += unique("spec.tokenRequests[{}].audience", audiences)
    for index, request in requests:
        seconds, field = request.get("expirationSeconds"), f"spec.tokenRequests[{index}].expirationSeconds"
        if seconds is not None and seconds < _SHORTEST_TOKEN:
            found.append(invalid(field, seconds, "may not specify a duration less than 10 minutes"))
        if seconds is not None and seconds > 1 << 32:
            found.append(invalid(field, seconds, "may not specify a duration larger than 2^32 seconds"))
    if old is None:
        return found
    before = old.get("spec") or {}
    if spec.get("attachRequired") != before.get("attachRequired"):  # under this name in kube-apiserver's answers
        found.append(invalid("spec.attachedRequired", spec.get("attachRequired"), IMMUTABLE))
    return found + immutable(spec, before, "spec", "volumeLifecycleModes")


def validate_node_drivers(new: Object, old: Object | None) -> list[Cause]:
    drivers = list(enumerate((new.get("spec") or {}).get("drivers") or ()))
    found: list[Cause] = []
    for index, driver in drivers:
        found += _node_driver(f"spec.drivers[{index}]", driver)
    found += unique("spec.drivers[{}].name", ((index, driver.get("name", "")) for index, driver in drivers))
    if old is not None:
        before = {driver.get("name"): driver for driver in (old.get("spec") or {}).get("drivers") or ()}
        for _, driver in drivers:
            if before.get(driver.get("name"), driver) != driver:
                found.append(invalid("spec.drivers", driver, IMMUTABLE))
    return found


def _node_driver(path: str, driver: Object) -> list[Cause]:
    found = _driver_name(f"{path}.name", driver.get("name", ""))
    node = driver.get("nodeID", "")
    if not node:
        found.append(required(f"{path}.nodeID"))
    elif len(node) > _LONGEST_NODE_ID:
        found.append(invalid(f"{path}.nodeID", node, f"must be {_LONGEST_NODE_ID} characters or less"))
    found += not_negative(driver.get("allocatable") or {}, f"{path}.allocatable", "count")
    keys: set[str] = set()
    for key in driver.get("topologyKeys") or ():
        found += [] if key else [required(path)]
        found += [duplicate(path, key)] if key in keys else []
        found += problems(path, key, qualified_name_problems(key))
        keys.add(key)
    return found


def _driver_name(field: str, name: str) -> list[Cause]:
    found = [] if name else [required(field)]
    if len(name) > _LONGEST_DRIVER:
        found.append(too_long(field, _LONGEST_DRIVER))
    return found + problems(field, name, subdomain_problems(name.lower()))


def validate_storage_capacity(new: Object, old: Object | None) -> list[Cause]:
    found = label_selector("nodeTopology", new.get("nodeTopology") or {})
    chosen = new.get("storageClassName", "")
    found += problems("storageClassName", chosen, subdomain_problems(chosen))
    size = new.get("capacity")
    if size is not None and quantity.parse(size) < 0:
        found.append(invalid("capacity", size, NOT_NEGATIVE))
    return found + (immutable(new, old, "", "nodeTopology", "storageClassName") if old is not None else [])


def validate_attachment(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    found = _source("spec.source", spec.get("source") or {})
    node = spec.get("nodeName", "")
    found += problems("spec.nodeName", node, subdomain_problems(node))
    if old is None:
        found += _driver_name("spec.attacher", spec.get("attacher", ""))
        volume: Any = (spec.get("source") or {}).get("persistentVolumeName")
        if volume:
            found += problems("spec.source.persistentVolumeName", volume, subdomain_problems(volume))
    return found + (immutable(new, old, "", "spec") if old is not None else [])


def _source(path: str, source: Object) -> list[Cause]:
    inline, volume = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    which = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and volume is None:
        return [required(path, which)]
    if inline is not None and volume is not None:
        return [forbidden(path, which)]
    if inline is None:
        detail = "must specify non empty persistentVolumeName"
        return [] if volume else [required(f"{path}.persistentVolumeName", detail)]
    place = f"{path}.inlineVolumeSpec"
    found = [
        forbidden(f"{place}.{name}", "may not be specified in the context of inline volumes")
        for name in ("claimRef", "capacity", "nodeAffinity", "storageClassName")
        if inline.get(name)
    ]
    if "csi" not in inline:
        found.append(required(f"{place}.csi", "has to be specified in the context of inline volumes"))
    found += [] if inline.get("accessModes") else [required(f"{place}.accessModes")]
    return found + volume_source(place, inline)


def validate_attachment_status(new: Object) -> list[Cause]:
    status = new.get("status") or {}
    found: list[Cause] = []
    metadata = status.get("attachmentMetadata") or {}
    if sum(len(key) + len(value) for key, value in metadata.items()) > _LARGEST_METADATA:
        found.append(too_long("status.attachmentMetadata", _LARGEST_METADATA))
    for name in ("attachError", "detachError"):
        message = (status.get(name) or {}).get("message") or ""
        found += [too_long(f"status.{name}.message", _LARGEST_METADATA)] if len(message) > _LONGEST_ERROR else []
    return found
