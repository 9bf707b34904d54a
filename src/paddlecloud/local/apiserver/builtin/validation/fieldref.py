"""Downward API: which fields of a pod may be given to its containers as variables or files.

A path that Kubernetes does not offer would be found out only when the pod starts, so it is refused beforehand. Resource
references (limits and requests) are not judged here.
"""

from __future__ import annotations

import re

from paddlecloud.kube.name_rules import qualified_name_problems
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.schema.causes import Cause, invalid, required

_IDENTITY = frozenset(("metadata.name", "metadata.namespace", "metadata.uid"))
_FOR_VARIABLES = _IDENTITY | {
    "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
}  # fmt: skip
_FOR_FILES = _IDENTITY | {"metadata.labels", "metadata.annotations"}
_ONE_ENTRY = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")


def variable(path: str, reference: Object) -> list[Cause]:
    """Causes to refuse a `fieldRef` of an environment variable."""
    return _field(path, reference, _FOR_VARIABLES)


def files(path: str, items: list[Object]) -> list[Cause]:
    """Causes to refuse the items of a downward API volume; where each file goes is judged with all volumes."""
    found: list[Cause] = []
    for index, item in enumerate(items):
        place = f"{path}.items[{index}]"
        if item.get("fieldRef") is not None:
            found += _field(f"{place}.fieldRef", item["fieldRef"], _FOR_FILES)
        elif item.get("resourceFieldRef") is None:
            found.append(required(place, "one of fieldRef and resourceFieldRef is required"))
    return found


def _field(path: str, reference: Object, offered: frozenset[str]) -> list[Cause]:
    wanted = reference.get("fieldPath", "")
    if not wanted:
        return [required(f"{path}.fieldPath")]
    if wanted in offered:
        return []
    entry = _ONE_ENTRY.fullmatch(wanted)
    if entry is None:
        detail = f"error converting fieldPath: field label not supported: {wanted}"
        return [invalid(f"{path}.fieldPath", wanted, detail)]
    key = entry[2].lower() if entry[1] == "annotations" else entry[2]
    return [invalid(path, entry[2], problem) for problem in qualified_name_problems(key)]
