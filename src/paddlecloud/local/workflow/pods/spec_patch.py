"""`podSpecPatch` of workflows and templates: a strategic merge patch of the pod's spec, as YAML or JSON. Pure.

The text is a tenant's: its size is bounded, and aliases are refused, since a few of them stand for any amount.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import yaml

from paddlecloud.kube import yamlio
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.kinds import builtin_kinds
from paddlecloud.local.apiserver.objects.admission import node_of
from paddlecloud.local.apiserver.objects.strategic_merge import strategic_merge
from paddlecloud.local.apiserver.schema.structural import Node
from paddlecloud.local.workflow.expressions.budget import take_work
from paddlecloud.local.workflow.pods.containers import MAIN
from paddlecloud.local.workflow.templates import Template, TemplateError

LONGEST = 64 * 1024
_BYTES_OF_A_STEP = 2
"""Of what one pass may do; the rest of its pods is made in the next one."""
_COMMAND = ("command", "args")
_PROGRAMS = {"container", "script"}
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def patches_of(spec: Mapping[str, Any], template: Template) -> list[Object]:
    """The patch of the workflow comes first, then that of the template, as in Argo."""
    return [parsed(text) for text in (spec.get("podSpecPatch"), template.get("podSpecPatch")) if text]


def with_commands(template: Template, patches: Sequence[Object]) -> Template:
    """The template whose programs are those of the patches.

    Argo patches the pod and then has its executor start what the containers run (`createWorkflowPod` of its
    workflow/controller/workflowpod.go). Here the pod is made with the executor, so this part of a patch comes first.
    """
    found: dict[str, Object] = {}
    for patch in patches:
        for container in _containers(patch):
            given = {field: container[field] for field in _COMMAND if field in container}
            found.setdefault(str(container.get("name")), {}).update(given)
    made = dict(template)
    for kind in _PROGRAMS & template.keys():
        made[kind] = _started_by(template[kind], found.get(MAIN))
    if sidecars := template.get("sidecars"):
        made["sidecars"] = _all_started_by(sidecars, found)
    if whole := template.get("containerSet"):
        made["containerSet"] = {**whole, "containers": _all_started_by(whole.get("containers") or (), found)}
    return made


def patched(spec: Object, patches: Sequence[Object]) -> Object:
    """What the containers run stays as it is: `with_commands` has changed it before."""
    commands = {each["name"]: {field: each.get(field) for field in _COMMAND} for each in spec["containers"]}
    for patch in patches:
        spec = _merged(spec, patch)
    if not patches:
        return spec
    return {
        **spec,
        "containers": [_started_by(each, commands.get(each["name"])) for each in spec["containers"]],
    }


def _containers(patch: Object) -> list[Object]:
    given = patch.get("containers")
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def _all_started_by(containers: Sequence[Object], found: Mapping[str, Object]) -> list[Object]:
    return [_started_by(each, found.get(str(each.get("name")))) for each in containers]


def _started_by(container: Object, command: Mapping[str, Any] | None) -> Object:
    """With these fields, of which None is none."""
    changed = {**container, **(command or {})}
    return {field: value for field, value in changed.items() if field not in _COMMAND or value is not None}


def parsed(text: Any, what: str = "podSpecPatch") -> Object:
    """The map that a tenant's YAML or JSON is. Raises `TemplateError`, which calls it `what`."""
    readable = checked(text, what)
    take_work(len(text) // _BYTES_OF_A_STEP)
    made: Object = msgspec.json.decode(readable)
    return made


def checked(text: Any, what: str = "podSpecPatch") -> bytes:
    """The map as JSON, for those who only ask if it is one."""
    if not isinstance(text, str) or len(text) > LONGEST:
        raise TemplateError(f"{what} must be a text of at most {LONGEST:,} characters")
    return as_json(text, what)


@functools.lru_cache(maxsize=32)
def as_json(text: str, what: str) -> bytes:
    """Remembered: all templates of a workflow may have the same patch, and YAML takes long to read."""
    try:
        patch = yamlio.load_one(text)  # first: it counts depth, and libyaml takes quadratic time for deep nesting
        if "*" in text and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=_Loader)):
            raise TemplateError(f"{what} must have no aliases (*name)")
    except yamlio.YamlError as why:
        raise TemplateError(f"{what} is neither YAML nor JSON: {str(why)[:300]}") from None
    if not isinstance(patch, dict):
        raise TemplateError(f"{what} must be a map")
    return msgspec.json.encode(patch)


def _merged(spec: Object, patch: Object) -> Object:
    try:
        merged = strategic_merge({"spec": spec}, {"spec": patch}, _pod())
    except ApiError as why:
        raise TemplateError(f"podSpecPatch cannot be merged: {str(why)[:300]}") from None
    return dict(merged["spec"])


@functools.cache
def _pod() -> Node:
    return node_of(next(info for info in builtin_kinds() if info.kind == "Pod"))
