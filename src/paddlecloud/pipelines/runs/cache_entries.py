"""Which run a step got its answer from: Argo's entry of it in the ConfigMap of the cache. Pure."""

from __future__ import annotations

import msgspec

from paddlecloud.kube.resource import Object
from paddlecloud.pipelines.runs.nodes import nodes_of


def cache_of(workflow: Object, node: str) -> tuple[str, str]:
    """The ConfigMap in which a step was looked for, and the key of its entry there."""
    memo = (nodes_of(workflow).get(node) or {}).get("memoizationStatus") or {}
    return str(memo.get("cacheName") or ""), str(memo.get("key") or "")


def run_of_entry(entry: str) -> str:
    """The run that made an entry of a cache: Argo names nodes RUN-NUMBER. Empty for what is no entry."""
    try:
        found = msgspec.json.decode(entry)
    except msgspec.DecodeError:
        return ""
    return str(found.get("nodeID") or "").rpartition("-")[0] if isinstance(found, dict) else ""
