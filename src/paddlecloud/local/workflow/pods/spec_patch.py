"""`podSpecPatch` of workflows and templates: a strategic merge patch of the pod's spec, as YAML or JSON. Pure.

The text is a tenant's: its size is bounded, and aliases are refused, since a few of them stand for any amount.
"""

from __future__ import annotations

import functools
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
from paddlecloud.local.workflow.templates import TemplateError

LONGEST = 64 * 1024
_BYTES_OF_A_STEP = 2
"""Of what one pass may do; the rest of its pods is made in the next one."""
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def patched(spec: Object, *patches: Any) -> Object:
    """The patch of the workflow comes first, then that of the template, as in Argo."""
    for text in patches:
        if text:
            spec = _merged(spec, parsed(text))
    return spec


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
