"""A spec on top of another one: a Workflow on its WorkflowTemplate, a template on `templateDefaults`. Pure.

As Argo's `workflow/util/merge.go`, which is a strategic merge patch: maps are merged, lists of named things are merged
by their name, other lists are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEYS = {
    "arguments.parameters": "name",
    "arguments.artifacts": "name",
    "templates": "name",
    "volumes": "name",
    "volumeClaimTemplates": "name",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "env": "name",
    "volumeMounts": "mountPath",
    "sidecars": "name",
    "initContainers": "name",
    "inputs.parameters": "name",
    "inputs.artifacts": "name",
    "outputs.parameters": "name",
    "outputs.artifacts": "name",
}
"""Lists that are merged, by the end of their path, and the field that identifies a member (`patchMergeKey`)."""


def joined(usual: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` counts where both have a value."""
    return _maps(usual, given, "")


def _maps(usual: Mapping[str, Any], given: Mapping[str, Any], path: str) -> dict[str, Any]:
    made = dict(usual)
    for name, value in given.items():
        if value is not None:
            made[name] = _values(made.get(name), value, f"{path}.{name}")
    return made


def _values(usual: Any, given: Any, path: str) -> Any:
    if isinstance(usual, Mapping) and isinstance(given, Mapping):
        return _maps(usual, given, path)
    if isinstance(usual, list) and isinstance(given, list) and (key := _key(path)):
        return _lists(usual, given, key, path)
    return given


def _key(path: str) -> str | None:
    *_, outer, last = ("", "", *path.split("."))
    return _KEYS.get(f"{outer}.{last}") or _KEYS.get(last)


def _lists(usual: list[Any], given: list[Any], key: str, path: str) -> list[Any]:
    """Members that only the patch has come first, as in Kubernetes' strategic merge patch."""
    if not all(isinstance(each, Mapping) and isinstance(each.get(key), str) for each in (*usual, *given)):
        return given
    patches = {each[key]: each for each in given}
    known = {each[key] for each in usual}
    new = [each for name, each in patches.items() if name not in known]
    return [*new, *(_maps(each, patches[each[key]], path) if each[key] in patches else each for each in usual)]
