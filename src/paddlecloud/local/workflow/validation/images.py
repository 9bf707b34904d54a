"""Runs of pipelines are refused where no recipe answers for the image of a step, before their first step starts.

Argo would run the steps before it and then wait for the image for ever. Workflows that are no runs of a pipeline are
taken as Argo takes them: their branches may never be run. Nothing is asked about an image that a parameter names, about
steps that tolerate taints, since simulated nodes need no images, nor about pods that are patched: the patch may name
another image, and often is made by a step, as those of Kubeflow Pipelines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.workflow.names import GROUP, WORKFLOWS

RUN_LABEL = "pipeline/runid"
"""Of workflows that are runs of a pipeline: `pdc pipeline`, the SDK and the pipelines' API set it, as KFP does."""
MOST_NAMED, MOST_ASKED = 10, 100
"""Causes in one answer, and images that are looked up for one run: a hundred take milliseconds."""
Obstacle = Callable[[str], str]
"""Of an image: why no pod can have it, or nothing."""


def judge_images(info: KindInfo, new: Object, old: Object | None, options: WriteOptions, *, obstacle: Obstacle) -> None:
    """An admission policy, for what is created."""
    if old is not None or info.resource.group != GROUP or info.kind != WORKFLOWS.kind:
        return
    if RUN_LABEL not in (new["metadata"].get("labels") or {}):
        return
    spec = new.get("spec")
    if not isinstance(spec, dict) or _is_left_to_others(spec):
        return
    found = list(islice(_problems(spec, obstacle), MOST_NAMED))
    if found:
        raise errors.invalid(info.kind, str(new["metadata"].get("name", "")), found, group=GROUP)


def _problems(spec: Mapping[str, Any], obstacle: Obstacle) -> Iterator[tuple[str, str, str]]:
    known: dict[str, str] = {}
    for number, template in enumerate(spec.get("templates") or ()):
        if not isinstance(template, dict) or _is_left_to_others(template):
            continue
        for path, image in _images(template):
            if "{{" in image or (image not in known and len(known) == MOST_ASKED):
                continue
            if image not in known:
                known[image] = obstacle(image)
            if why := known[image]:
                name = template.get("name", "")
                yield f"spec.templates[{number}].{path}", "FieldValueInvalid", f"Invalid value: step {name!r}: {why}"


def _is_left_to_others(holder: Mapping[str, Any]) -> bool:
    """Of a workflow's spec or a template."""
    return bool(holder.get("tolerations") or holder.get("podSpecPatch"))


def _images(template: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every image of a template, by its field."""
    lists = {
        "containerSet.containers": _of(template.get("containerSet"), "containers"),
        "sidecars": template.get("sidecars"),
        "initContainers": template.get("initContainers"),
    }
    containers = [(kind, template.get(kind)) for kind in ("container", "script")]
    containers += [
        (f"{field}[{at}]", each)
        for field, listed in lists.items()
        if isinstance(listed, list)
        for at, each in enumerate(listed)
    ]
    for path, container in containers:
        if isinstance(image := _of(container, "image"), str) and image:
            yield f"{path}.image", image


def _of(value: Any, field: str) -> Any:
    return value.get(field) if isinstance(value, dict) else None
