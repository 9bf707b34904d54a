"""Templates that run in a pod: what of them cannot be carried out, by the name of the field. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from paddlecloud.kube.cycles import cycle_in
from paddlecloud.local.workflow.executor import conditions, jsonpath
from paddlecloud.local.workflow.executor.flags import Flags
from paddlecloud.local.workflow.executor.orders import ExecutorError
from paddlecloud.local.workflow.pods.spec_patch import checked
from paddlecloud.local.workflow.templates import TemplateError
from paddlecloud.local.workflow.validation.artifacts import artifact_problems
from paddlecloud.local.workflow.validation.problems import (
    Problem,
    duplicate,
    invalid,
    not_supported,
    required,
    unknown,
    unserved,
)

_RESOURCE = frozenset((
    "action", "manifest", "manifestFrom", "mergeStrategy", "setOwnerReference", "successCondition", "failureCondition",
    "flags",
))  # fmt: skip
ACTIONS = ("create", "apply", "patch", "replace", "delete", "get")
STRATEGIES = ("strategic", "merge", "json")
_SET = frozenset(("containers", "volumeMounts", "retryStrategy"))


def container_problems(container: Any, names: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if not isinstance(container, dict) or not container.get("image"):
        yield required(f"{path}.image")


def resource_problems(resource: Any, names: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if not isinstance(resource, dict):
        yield invalid(path, "must be a map")
        return
    for name in resource:
        if name not in _RESOURCE and resource[name]:
            yield unserved(path, name, _RESOURCE)
    for name, allowed, needed in (("action", ACTIONS, True), ("mergeStrategy", STRATEGIES, False)):
        value = resource.get(name)
        if (value or needed) and value not in allowed and "{{" not in str(value):
            yield not_supported(f"{path}.{name}", f"{str(value)[:60]!r}: must be one of {', '.join(allowed)}")
    if not any(resource.get(each) for each in ("manifest", "manifestFrom", "flags")):
        yield required(f"{path}.manifest", "or manifestFrom, or flags")
    if not isinstance(resource.get("manifest") or "", str):
        yield invalid(f"{path}.manifest", "must be a text, as after `manifest: |`")
    flags = resource.get("flags") or []
    if not isinstance(flags, list) or not all(isinstance(each, str) for each in flags):
        yield invalid(f"{path}.flags", "must be a list of texts")
    else:
        yield from _readable(lambda: Flags.of([each for each in flags if "{{" not in each]), f"{path}.flags")
    for name in ("successCondition", "failureCondition"):
        text = str(resource.get(name) or "")
        if "{{" not in text:
            yield from _readable(lambda text=text: conditions.parsed(text), f"{path}.{name}")  # type: ignore[misc]


_HTTP = frozenset((
    "method", "url", "headers", "timeoutSeconds", "successCondition", "body", "bodyFrom", "insecureSkipVerify",
))  # fmt: skip


def http_problems(http: Any, names: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if not isinstance(http, dict) or not isinstance(http.get("url"), str) or not http["url"]:
        yield required(f"{path}.url")
        return
    for name in http:
        if name not in _HTTP:
            yield unknown(path, name, _HTTP)
    if not http["url"].startswith(("http://", "https://", "{{")):
        yield invalid(f"{path}.url", f"{http['url'][:60]!r}: no http or https address")
    lasts = http.get("timeoutSeconds")
    if lasts is not None and (type(lasts) is not int or not 0 < lasts < 2**31):
        yield invalid(f"{path}.timeoutSeconds", "must be a whole number of seconds")
    headers = http.get("headers") or []
    if not isinstance(headers, list) or not all(isinstance(each, dict) and each.get("name") for each in headers):
        yield invalid(f"{path}.headers", "must be a list of headers with names")
    source = http.get("bodyFrom")
    if source is not None and not isinstance(source, dict):
        yield invalid(f"{path}.bodyFrom", "must be a map with bytes")


def data_problems(data: Any, names: Mapping[str, Any], path: str) -> Iterator[Problem]:
    source = data.get("source") if isinstance(data, dict) else None
    paths = source.get("artifactPaths") if isinstance(source, dict) else None
    if not isinstance(paths, dict):
        yield required(f"{path}.source.artifactPaths", "where the paths are")
        return
    yield from artifact_problems([{"name": "paths", **paths}], f"{path}.source.artifactPaths", "argument")
    for name in ("http", "raw"):
        if paths.get(name):
            yield invalid(f"{path}.source.artifactPaths.{name}", "it has no list of paths")
    steps = data.get("transformation")
    if not isinstance(steps, list) or not all(isinstance(each, dict) for each in steps):
        yield required(f"{path}.transformation", "a list of expressions")
        return
    for index, step in enumerate(steps):
        if not step.get("expression"):
            yield required(f"{path}.transformation[{index}].expression")


def path_problems(value_from: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for name, read in (("jsonPath", jsonpath.json_path), ("jqFilter", jsonpath.jq)):
        text = value_from.get(name)
        if text is not None and "{{" not in str(text):
            yield from _readable(lambda read=read, text=text: read(str(text), {}), f"{path}.{name}")  # type: ignore[misc]


def _readable(read: Callable[[], Any], path: str) -> Iterator[Problem]:
    try:
        read()
    except ExecutorError as why:
        yield invalid(path, f"{str(why)[:300]}")


def container_set_problems(whole: Any, names: Mapping[str, Any], path: str) -> Iterator[Problem]:
    containers = whole.get("containers") if isinstance(whole, dict) else None
    if not isinstance(containers, list) or not containers or not all(isinstance(each, dict) for each in containers):
        yield required(f"{path}.containers")
        return
    for name in whole:
        if name not in _SET and whole[name]:
            yield unserved(path, name, _SET)
    seen: set[str] = set()
    for index, container in enumerate(containers):
        here = f"{path}.containers[{index}]"
        yield from container_problems(container, names, here)
        name = container.get("name")
        if not isinstance(name, str) or not name:
            yield required(f"{here}.name")
        elif name in seen:
            yield duplicate(f"{here}.name", name[:60])
        seen.add(str(name))
    needs = {str(each.get("name")): [str(need) for need in each.get("dependencies") or ()] for each in containers}
    unknown = next(((name, need) for name, each in needs.items() for need in each if need not in needs), None)
    if unknown is not None:
        why = f"container {unknown[0][:60]} depends on {unknown[1][:60]}, which is no container of the set"
        yield invalid(f"{path}.containers", why)
    elif cycle := cycle_in(needs):
        why = "containers that depend on each other in a circle never begin"
        yield invalid(f"{path}.containers", f"{why}: {' → '.join(cycle[:10])}")


def patch_problems(holder: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """A patch with tags is read when they are known."""
    text = holder.get("podSpecPatch")
    if text and "{{" not in str(text):
        try:
            checked(text)
        except TemplateError as why:
            yield invalid(f"{path}.podSpecPatch", f"{str(why)[:300]}")


def claim_problems(spec: Mapping[str, Any]) -> Iterator[Problem]:
    templates = spec.get("volumeClaimTemplates") or []
    path = "spec.volumeClaimTemplates"
    if not isinstance(templates, list) or not all(isinstance(each, dict) for each in templates):
        yield invalid(path, "must be a list of claims")
        return
    for index, template in enumerate(templates):
        meta = template.get("metadata")
        if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
            yield required(f"{path}[{index}].metadata.name")
    strategy = (spec.get("volumeClaimGC") or {}).get("strategy")
    if strategy not in (None, "", "OnWorkflowCompletion", "OnWorkflowSuccess"):
        yield not_supported("spec.volumeClaimGC.strategy", "must be OnWorkflowCompletion or OnWorkflowSuccess")
