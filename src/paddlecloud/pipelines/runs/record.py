"""What a run did, step by step: values, artifacts, images, times. Made of the Workflow's status and its pods. Pure.

A pod may be gone; what the platform kept of it serves as well (`workflows/log` of the embedded platform). What neither
has is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from paddlecloud.api.conditions import condition_of
from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import parse_rfc3339
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs.nodes import nodes_of

LEAVES = frozenset({"Pod", "HTTP", "Suspend", "Plugin", "Skipped"})
"""Types of nodes that are steps; the others group them."""
MAIN = "main"
"""Argo's name of the container that runs the step's program."""


class Timing(NamedTuple):
    """Seconds; None where it is not known."""

    queued: float | None = None
    """Until a node was found."""
    pulling: float | None = None
    """From then until the program began: image, volumes, input artifacts."""
    running: float | None = None


class Step(NamedTuple):
    id: str
    name: str
    type: str
    phase: str
    message: str
    template: str
    depth: int
    """How many groups it is in."""
    pod: str
    started: str
    finished: str
    timing: Timing
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    artifacts: tuple[Object, ...]
    image: str
    image_digest: str
    cache_key: str
    cache_hit: bool
    after: tuple[str, ...] = ()
    """The steps that it follows."""

    @property
    def seconds(self) -> float | None:
        return _between(self.started, self.finished)

    @property
    def is_leaf(self) -> bool:
        return self.type in LEAVES

    def report(self) -> Object:
        """As `-o json` prints it."""
        return {
            **self._asdict(),
            "timing": self.timing._asdict(),
            "artifacts": list(self.artifacts),
            "after": list(self.after),
        }


def steps(workflow: Object, pods: Iterable[Object] = (), artifacts: Iterable[Object] = ()) -> list[Step]:
    """In the order of the graph: a group before what is in it, a step before those that follow it.

    `artifacts` are those of `workflows/artifacts`, with digests and sizes, where the platform has them.
    """
    nodes = nodes_of(workflow)
    by_node = {(pod["metadata"].get("annotations") or {}).get(names.NODE_ID): pod for pod in pods}
    stored: dict[tuple[Any, Any], Object] = {(each.get("node"), each.get("name")): each for each in artifacts}
    parents = _parents(nodes)
    return [
        _step(key, nodes[key], depth, by_node.get(key), stored)._replace(after=_after(nodes, parents.get(key, ())))
        for key, depth in _ordered(workflow, nodes)
    ]


def _ordered(workflow: Object, nodes: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Ids with their depth, which is the number of nodes around one."""
    around = _around(nodes)
    inside: dict[str, list[str]] = {}
    for key in _by_precedence(workflow["metadata"]["name"], nodes):
        inside.setdefault(around[key], []).append(key)
    seen: set[str] = set()
    for first in [*inside.get("", ()), *nodes]:  # the rest are nodes around one another, in a circle
        waiting = [(first, 0)]
        while waiting:
            key, depth = waiting.pop()
            if key not in seen:
                seen.add(key)
                yield key, depth
                waiting += [(each, depth + 1) for each in reversed(inside.get(key, ()))]


def _around(nodes: Mapping[str, Any]) -> dict[str, str]:
    """The node around each, empty for the outermost. Argo's `boundaryID` names the template around a node: attempts of
    a step and iterations of a loop are in their own node besides."""
    found = {key: str(node.get("boundaryID") or "") for key, node in nodes.items()}
    for key, node in nodes.items():
        if node.get("type") in ("Retry", "TaskGroup"):
            parts = [child for child in node.get("children") or () if child in nodes]
            named = f"{node.get('name')}("
            found |= {child: key for child in parts if str(nodes[child].get("name")).startswith(named)}
    return {key: each if each in nodes else "" for key, each in found.items()}


def _by_precedence(first: str, nodes: Mapping[str, Any]) -> list[str]:
    """Each before those that follow it; what began earlier comes first where that is open."""
    ordered: list[str] = []
    seen: set[str] = set()
    for root in [first, *nodes]:
        ended: list[str] = []
        waiting = [(root, False)]
        while waiting:
            key, left = waiting.pop()
            if left:
                ended.append(key)
            elif key in nodes and key not in seen:
                seen.add(key)
                children = [str(child) for child in nodes[key].get("children") or ()]
                waiting.append((key, True))
                waiting += [(child, False) for child in sorted(children, key=lambda child: _begin(nodes.get(child)))]
        ordered += reversed(ended)
    return ordered


def _parents(nodes: Mapping[str, Any]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for key, node in nodes.items():
        for child in node.get("children") or ():
            found.setdefault(str(child), set()).add(key)
    return found


def _after(nodes: Mapping[str, Any], parents: Iterable[str]) -> tuple[str, ...]:
    """The steps that a step follows, by their names; an attempt counts as its step."""
    leaves = [nodes[key] for key in sorted(parents) if nodes[key].get("type") in LEAVES]
    names_ = [str(node.get("displayName") or node.get("name") or "") for node in leaves]
    return tuple(dict.fromkeys(re.sub(r"\(\d+\)$", "", name) for name in names_))


def _begin(node: Any) -> tuple[str, str]:
    return (str(node.get("startedAt") or ""), str(node.get("name") or "")) if isinstance(node, dict) else ("", "")


def _step(key: str, node: Object, depth: int, pod: Object | None, stored: Mapping[tuple[Any, Any], Object]) -> Step:
    outputs = node.get("outputs") or {}
    memo = node.get("memoizationStatus") or {}
    container = _container(pod)
    values = _values(outputs)
    for field in ("result", "exitCode"):
        if outputs.get(field) is not None:
            values[field] = outputs[field]
    return Step(
        id=key,
        name=str(node.get("displayName") or node.get("name") or key),
        type=str(node.get("type") or ""),
        phase=str(node.get("phase") or "Pending"),
        message=str(node.get("message") or ""),
        template=str(node.get("templateName") or (node.get("templateRef") or {}).get("template") or ""),
        depth=depth,
        pod=str(pod["metadata"]["name"]) if pod else "",
        started=str(node.get("startedAt") or ""),
        finished=str(node.get("finishedAt") or ""),
        timing=_timing(pod),
        inputs=_values(node.get("inputs") or {}),
        outputs=values,
        artifacts=tuple(
            _artifact(each, stored.get((key, each.get("name")))) for each in outputs.get("artifacts") or ()
        ),
        image=str(container.get("image") or ""),
        image_digest=str(container.get("imageID") or ""),
        cache_key=str(memo.get("key") or ""),
        cache_hit=bool(memo.get("hit")),
    )


def _values(block: Object) -> dict[str, Any]:
    return {str(each["name"]): each.get("value") for each in block.get("parameters") or () if "name" in each}


def _artifact(artifact: Object, stored: Object | None) -> Object:
    place = next(
        ((kind, artifact[kind]) for kind in ("s3", "gcs", "oss", "azure", "http", "raw") if artifact.get(kind)), None
    )
    described = {"name": artifact.get("name"), "path": artifact.get("path")}
    if place is not None and isinstance(place[1], dict):
        described["place"] = str(place[1].get("key") or place[1].get("url") or place[0])
    for field in ("digest", "size"):
        if stored and stored.get(field):
            described[field] = stored[field]
    return described


def _container(pod: Object | None) -> Object:
    found: list[Object] = ((pod or {}).get("status") or {}).get("containerStatuses") or []
    return next((each for each in found if each.get("name") == MAIN), found[0] if found else {})


def _timing(pod: Object | None) -> Timing:
    if pod is None:
        return Timing()
    created = str(pod["metadata"].get("creationTimestamp") or "")
    scheduled = str((condition_of(pod, "PodScheduled") or {}).get("lastTransitionTime") or "")
    state = _container(pod).get("state") or {}
    begun = state.get("terminated") or state.get("running") or {}
    began, ended = str(begun.get("startedAt") or ""), str(begun.get("finishedAt") or "")
    return Timing(_between(created, scheduled), _between(scheduled, began), _between(began, ended))


def _between(earlier: str, later: str) -> float | None:
    try:
        return max(0.0, parse_rfc3339(later) - parse_rfc3339(earlier))
    except ValueError:  # one of the two has not come yet
        return None
