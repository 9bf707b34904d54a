"""Two runs side by side: what differs in their parameters and in each of their steps. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.pipelines.runs.record import Step

_FIELDS = ("phase", "message", "image", "image_digest", "cache_key")
_OF_PODS = frozenset(("image", "image_digest"))
"""Of a step that was answered from the cache they are not known: it had no pod."""


class Difference(NamedTuple):
    where: str
    """`parameters.msg`, `second.outputs.accuracy`: what differs."""
    before: Any
    after: Any
    """None where one of the two has no such thing."""


def differences(first: Object, second: Object, before: Sequence[Step], after: Sequence[Step]) -> list[Difference]:
    """Of two workflows and their steps. Steps are the same by name; of one name, by their order."""
    found = list(_of_mappings("parameters", _arguments(first), _arguments(second)))
    left, right = _named(before), _named(after)
    for name in [*left, *(name for name in right if name not in left)]:
        found += _of_steps(name, left.get(name), right.get(name))
    return found


def _of_steps(name: str, before: Step | None, after: Step | None) -> Iterator[Difference]:
    if before is None or after is None:
        yield Difference(name, before and before.phase, after and after.phase)
        return
    cached = before.cache_hit or after.cache_hit
    for field in _FIELDS:
        if cached and field in _OF_PODS:
            continue
        old, new = getattr(before, field), getattr(after, field)
        if old != new and (field != "image_digest" or (old and new)):
            yield Difference(f"{name}.{field}", old or None, new or None)
    yield from _of_mappings(f"{name}.inputs", before.inputs, after.inputs)
    yield from _of_mappings(f"{name}.outputs", before.outputs, after.outputs)
    yield from _of_mappings(f"{name}.artifacts", _digests(before), _digests(after))


def _of_mappings(where: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Difference]:
    for key in [*before, *(key for key in after if key not in before)]:
        if before.get(key) != after.get(key):
            yield Difference(f"{where}.{key}", before.get(key), after.get(key))


def _arguments(workflow: Object) -> dict[str, Any]:
    found = ((workflow.get("spec") or {}).get("arguments") or {}).get("parameters") or ()
    return {str(each["name"]): each.get("value") for each in found}


def _digests(step: Step) -> dict[str, Any]:
    return {str(each["name"]): each["digest"] for each in step.artifacts if each.get("digest")}


def _named(steps: Sequence[Step]) -> dict[str, Step]:
    """Steps by a name that is unique: the second of a name is `name (2)`. Groups have no values of their own."""
    found: dict[str, Step] = {}
    counts: dict[str, int] = {}
    for step in steps:
        if step.is_leaf:
            counts[step.name] = counts.get(step.name, 0) + 1
            found[step.name if counts[step.name] == 1 else f"{step.name} ({counts[step.name]})"] = step
    return found
