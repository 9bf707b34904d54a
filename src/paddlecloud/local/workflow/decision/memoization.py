"""`memoize`: what a template gave before is taken from a ConfigMap instead of running it again. Pure.

The ConfigMap, its label and its entries are as Argo has them (`workflow/controller/cache`), so both can use one. Only a
ConfigMap of the workflow's own namespace that is labelled as a cache is read or written; a missing one is created.

Argo takes an entry without looking whether its artifacts are still stored (`configmap_cache.go`, `Load`), and keeps
artifacts for ever unless asked not to. Here they go with their workflow, so an entry that names one which is gone
would fail all steps that take it, for ever: it is a miss, and overwritten when the step has run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.plan import Patch, Plan, PlannedEvent
from paddlecloud.kube.resource import CONFIGMAPS, Object
from paddlecloud.local.workflow.artifacts.named import named_keys
from paddlecloud.local.workflow.durations import seconds
from paddlecloud.local.workflow.expressions.budget import take_work
from paddlecloud.local.workflow.names import CONFIG_MAP_TYPE
from paddlecloud.local.workflow.nodes import SUCCEEDED, Node
from paddlecloud.local.workflow.templates import TemplateError

CACHE = "Cache"
MOST_CACHED = 900 * 1024
"""Bytes of all entries of one ConfigMap; an object has at most 1 MiB."""
MOST_SAVED = 32 * 1024 * 1024
"""Characters that one pass writes to ConfigMaps for nodes that ended; what more of them gave is not noted."""
_KEY = re.compile("[a-zA-Z0-9][-a-zA-Z0-9]*")

ConfigMap = Callable[[str], "Object | None"]
"""A ConfigMap of the workflow's namespace, by its name."""
IsStored = Callable[[str], bool]
"""Whether something is stored under a key of the namespace's built-in repository."""
MOST_LOOKED_FOR = 1000
"""Artifacts of one entry: one that names more is a miss."""
_LOOKUP = 100
"""Steps of the work of one pass that it takes to look for a key: some calls of the file system."""


def found(
    memoize: Mapping[str, Any], config_map: ConfigMap, now: float, is_stored: IsStored, *, built_in: bool
) -> tuple[Object, Object | None]:
    """The `memoizationStatus` of a node, and its outputs where they are known. `built_in` is whether the workflow has
    its artifacts in the built-in repository."""
    name, key = _names(memoize)
    status = {"hit": False, "key": key, "cacheName": name}
    data = _cache(config_map(name), name)
    take_work(len(data), 2 * len(data.get(key) or ""))  # the entry is decoded once for each node
    entry = _entry(data, key)
    if entry is None or not entry.get("nodeID"):
        return status, None
    if memoize.get("maxAge") and now > parse_rfc3339(str(entry["creationTimestamp"])) + seconds(memoize["maxAge"]):
        return status, None
    outputs = entry.get("outputs")
    outputs = outputs if isinstance(outputs, dict) else {}
    keys = list(islice(named_keys(outputs, built_in=built_in), MOST_LOOKED_FOR + 1))
    take_work(_LOOKUP * len(keys))
    if len(keys) > MOST_LOOKED_FOR or not all(is_stored(key) for key in keys):
        return status, None
    return {**status, "hit": True}, outputs


def _names(memoize: Mapping[str, Any]) -> tuple[str, str]:
    name, key = str(memoize["cache"]["configMap"]["name"]), str(memoize.get("key", ""))
    if not _KEY.fullmatch(key) or len(key) > 253:
        raise TemplateError(f"invalid cache key: {key[:253]}")
    return name, key


def _cache(config_map: Object | None, name: str) -> Mapping[str, Any]:
    if config_map is None:
        return {}
    kind = (config_map["metadata"].get("labels") or {}).get(CONFIG_MAP_TYPE)
    if kind != CACHE:
        raise TemplateError(f"ConfigMap {name} is no cache: it needs the label {CONFIG_MAP_TYPE}: {CACHE}")
    return config_map.get("data") or {}


def _entry(data: Mapping[str, Any], key: str) -> Object | None:
    text = data.get(key)
    if not text:
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError) as why:
        raise TemplateError(f"malformed cache entry: could not unmarshal JSON; unable to parse: {why}") from None
    return entry if isinstance(entry, dict) else None


def save(
    plan: Plan, namespace: str, nodes: Iterable[Node], before: Mapping[str, Node], config_map: ConfigMap, now: float
) -> None:
    """Note what the memoized nodes gave that succeeded in this pass, or when it was last taken. `before` are the nodes
    as they are stored: anybody who may write the workflow may have written which caches they name."""
    left = MOST_SAVED
    for node in nodes:
        if _ended_now(node, before) and left > 0:
            left -= _save(plan, namespace, node, config_map, now)


def _save(plan: Plan, namespace: str, node: Node, config_map: ConfigMap, now: float) -> int:
    """Gives the characters that it cost. An entry that does not fit is left out, with an event."""
    status = node.get("memoizationStatus") or {}
    name, key = str(status.get("cacheName", "")), str(status.get("key", ""))
    known = config_map(name)
    try:
        data = _cache(known, name)
        if status.get("hit"):
            entry = {**(_entry(data, key) or {}), "lastHitTimestamp": rfc3339(now)}
        else:
            entry = {"nodeID": node["id"], "outputs": node.get("outputs"), "creationTimestamp": rfc3339(now)}
            entry["lastHitTimestamp"] = rfc3339(now)
    except TemplateError:
        return 0  # it was changed while the step ran: it is not ours to write
    text = json.dumps(entry, ensure_ascii=False)
    taken = sum(len(str(each).encode()) for other, each in data.items() if other != key)
    cost = len(text) + taken // 32  # of the other entries only the size is read
    if taken + len(text.encode()) > MOST_CACHED:
        message = f"ConfigMap {name} has no room for what {node['name'][:200]} gave: delete some of its entries"
        plan.events.append(PlannedEvent("CacheFull", message, type="Warning"))
        return cost
    begun = next((each for each in plan.create if _is_named(each, name)), None)
    if begun is not None:
        begun["data"][key] = text
    elif known is None:
        labels = {CONFIG_MAP_TYPE: CACHE}
        made = {"name": name, "namespace": namespace, "labels": labels}
        plan.create.append(
            {"apiVersion": CONFIGMAPS.api_version, "kind": CONFIGMAPS.kind, "metadata": made, "data": {key: text}}
        )
    else:
        plan.patch.append(Patch(CONFIGMAPS, name, namespace, {"data": {key: text}}))
    return cost


def _is_named(obj: Object, name: str) -> bool:
    return bool(obj["kind"] == CONFIGMAPS.kind and obj["metadata"]["name"] == name)


def _ended_now(node: Node, before: Mapping[str, Node]) -> bool:
    """Whether a memoized node succeeded in this pass: it was not stored as such."""
    if not node.get("memoizationStatus") or node["phase"] != SUCCEEDED:
        return False
    return (before.get(node["id"]) or {}).get("phase") != SUCCEEDED
