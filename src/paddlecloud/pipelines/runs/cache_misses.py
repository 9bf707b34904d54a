"""Why steps of a kfp 2 run were not answered from the cache: what earlier runs of its pipeline had otherwise, or that
Argo may not write it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from paddlecloud.kube.argo import SUCCEEDED
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.ir.caching import CACHE_PREFIX, Attempt, parts_of, why_missed
from paddlecloud.pipelines.runs.nodes import nodes_of

MOST_RUNS = 20
"""Earlier runs that are read: each may have megabytes."""


class _Execution(NamedTuple):
    node: str
    cache: str
    """The ConfigMap, which steps of one component share."""
    hit: bool
    succeeded: bool
    attempt: Attempt


def missed(workflow: Object) -> bool:
    """Whether a step of it was looked for in the cache of its pipeline and not found there."""
    return any(not each.hit for each in _executions(workflow))


def earlier_runs(workflow: Object, rows: Iterable[Object]) -> list[str]:
    """Names of the runs of the same pipeline that began before it, the latest first; of `rows` the metadata is read."""
    meta = workflow["metadata"]
    pipeline, begun = _pipeline(meta), meta["creationTimestamp"]
    found = [
        (row["metadata"]["creationTimestamp"], row["metadata"]["name"])
        for row in rows
        if pipeline and _pipeline(row["metadata"]) == pipeline and row["metadata"]["name"] != meta["name"]
    ]
    return [name for created, name in sorted(found, reverse=True) if created <= begun][:MOST_RUNS]


def reasons(workflow: Object, earlier: Iterable[Object]) -> dict[str, str]:
    """By the ids of the steps that missed. `earlier` is read one after the other; little of each is kept."""
    steps = [each for each in _executions(workflow) if not each.hit]
    known: dict[str, list[Attempt]] = {each.cache: [] for each in steps}
    for run in earlier:
        for each in _executions(run):
            if each.cache in known and each.succeeded:
                known[each.cache].append(each.attempt)
    return {each.node: why_missed(each.attempt, known[each.cache]) for each in steps}


def _executions(workflow: Object) -> Iterator[_Execution]:
    templates = {each.get("name"): each for each in (workflow.get("spec") or {}).get("templates") or ()}
    for key, node in nodes_of(workflow).items():
        memo = node.get("memoizationStatus")
        if not isinstance(memo, dict) or not str(memo.get("cacheName") or "").startswith(CACHE_PREFIX):
            continue
        template: Mapping[str, Any] = templates.get(node.get("templateName")) or {}
        given = (node.get("inputs") or {}).get("parameters") or ()
        yield _Execution(
            key,
            str(memo["cacheName"]),
            bool(memo.get("hit")),
            node.get("phase") == SUCCEEDED,
            Attempt(
                str((template.get("memoize") or {}).get("key") or ""),
                {str(each["name"]): str(each.get("value", "")) for each in given if "name" in each},
                parts_of(template),
            ),
        )


def _pipeline(meta: Object) -> str:
    return str((meta.get("annotations") or {}).get(names.PIPELINE_NAME) or "")


def lacks_cache_rights(failure: str) -> bool:
    """Whether a run failed because Argo's controller may not write the ConfigMap of a cache: in the words of Argo
    (workflow/controller/cache/configmap_cache.go) when it creates, updates and reads one."""
    caches = ("config map cache", "creating cache entry", f'configmaps "{CACHE_PREFIX}')
    return "forbidden" in failure and any(each in failure for each in caches)
