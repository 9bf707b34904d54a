"""What the workload controllers ask of pods, and how they make them from templates. Pure."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Iterator

from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.conditions import condition_in
from paddlecloud.kube.generated_names import ALPHABET, SUFFIX_LENGTH
from paddlecloud.kube.pods import is_finished, is_leaving
from paddlecloud.kube.resource import Object, owner_reference

LONGEST_NAME = 253


def is_active(pod: Object) -> bool:
    """Counts for the number its owner wants: neither over nor on its way out."""
    return not is_finished(pod) and not is_leaving(pod)


def _ready(pod: Object) -> Object | None:
    """The Ready condition if it holds."""
    ready = condition_in((pod.get("status") or {}).get("conditions") or (), "Ready")
    return ready if ready is not None and ready.get("status") == "True" else None


def is_ready(pod: Object) -> bool:
    return _ready(pod) is not None


def available_at(pod: Object, min_ready: int) -> float | None:
    """The moment from which a ready pod counts as available; None while it is not ready."""
    ready = _ready(pod)
    if ready is None:
        return None
    since = ready.get("lastTransitionTime")
    return (parse_rfc3339(since) if since else 0.0) + min_ready


def is_available(pod: Object, min_ready: int, now: float) -> bool:
    moment = available_at(pod, min_ready)
    return moment is not None and moment <= now


def next_available(pods: Iterable[Object], min_ready: int, now: float) -> float | None:
    """Seconds until the first of the ready pods becomes available; None when none is on its way there."""
    moments = [moment for pod in pods if (moment := available_at(pod, min_ready)) is not None and moment > now]
    return min(moments) - now if moments else None


# Making pods


def pod_from(template: Object, *, name: str, owner: Object) -> Object:
    """A pod as the template of its owner describes it."""
    meta = copy.deepcopy(template.get("metadata") or {})
    kept = {field: meta[field] for field in ("labels", "annotations", "finalizers") if meta.get(field)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": owner["metadata"]["namespace"],
            **kept,
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": copy.deepcopy(template.get("spec") or {}),
    }


def fresh_names(owner: Object, taken: Iterable[str], *, stem: str = "", place: str = "") -> Iterator[str]:
    """Names for new pods: `<owner>-x7k2p`, without end.

    They follow from the owner as it was read, so that a pass repeated after a crash makes the same names and harms
    nothing; an owner whose status has moved on gives others, so that a pod's name does not come back. Pods that are
    for different nodes get names by `place`, the node.
    """
    meta = owner["metadata"]
    stem = (stem or meta["name"])[: LONGEST_NAME - SUFFIX_LENGTH - 1]
    used = set(taken)
    origin = (meta["uid"], meta.get("resourceVersion", ""), stem, *((place,) if place else ()))
    number = 0
    while True:
        name = f"{stem}-{suffix(*origin, str(number))}"
        number += 1
        if name not in used:
            yield name


def suffix(*parts: str, length: int = SUFFIX_LENGTH) -> str:
    number = int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:16], "big")
    letters = []
    for _ in range(length):
        number, rest = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[rest])
    return "".join(letters)


def template_hash(template: Object, salt: int = 0) -> str:
    """Ten letters that stand for a template's content. `salt` gives other ones where a name is taken."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    return suffix(text, str(salt), length=10)
