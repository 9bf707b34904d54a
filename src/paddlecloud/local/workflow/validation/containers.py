"""Fields of containers that Kubernetes does not have are refused. Pure.

Argo ignores them, and so would the pod that is made of the container: a step with a misspelt `command` would run
something else and succeed.

What a container may have is what the API server itself knows of `core/v1`, down to variables and probes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from paddlecloud.local.apiserver.builtin.types import DEFINITIONS
from paddlecloud.local.apiserver.schema.node import REF, Node
from paddlecloud.local.workflow.validation.problems import EMPTY, Problem, unknown

_CONTAINER = {"$ref": f"{REF}io.k8s.api.core.v1.Container"}
_OF_ARGO = {
    "script": ("source",),
    "sidecars": ("mirrorVolumeMounts",),
    "initContainers": ("mirrorVolumeMounts",),
    "containers": ("dependencies",),
}
"""What Argo adds (`ScriptTemplate`, `UserContainer`, `ContainerNode`), by the field that holds the container."""


def unknown_fields(template: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """Of all containers of a template."""
    for name in ("container", "script"):
        yield from _of_container(template.get(name), f"{path}.{name}", name)
    whole = template.get("containerSet")
    for holder, name, here in (
        (template, "initContainers", path),
        (template, "sidecars", path),
        (whole if isinstance(whole, dict) else {}, "containers", f"{path}.containerSet"),
    ):
        listed = holder.get(name)
        for index, each in enumerate(listed if isinstance(listed, list) else ()):
            yield from _of_container(each, f"{here}.{name}[{index}]", name)


def _of_container(container: Any, path: str, holder: str) -> Iterator[Problem]:
    more = _OF_ARGO.get(holder, ())
    if isinstance(container, dict):
        known = {name: value for name, value in container.items() if name not in more}
        yield from _unknown(known, _container(), path, more)


def _unknown(value: Any, node: Node, path: str, more: tuple[str, ...] = ()) -> Iterator[Problem]:
    """It goes no deeper than the types do: below an unknown field nothing is read."""
    if isinstance(value, dict):
        for name, inner in value.items():
            below = node.children.get(name, node.additional)
            if below is not None:
                yield from _unknown(inner, below, f"{path}.{name[:60]}")
            elif not node.preserve and inner not in EMPTY:
                yield unknown(path, name, (*node.children, *more))
    elif isinstance(value, list) and node.items is not None:
        for index, inner in enumerate(value):
            yield from _unknown(inner, node.items, f"{path}[{index}]")


@functools.cache
def _container() -> Node:
    return Node(_CONTAINER, DEFINITIONS)
