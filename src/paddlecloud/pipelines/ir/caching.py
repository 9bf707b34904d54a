"""Steps that are answered from earlier runs: Argo's memoisation, with a key made of content. Pure.

The key is a digest of what the step is (image, command, arguments, environment, outputs) and of what it is given:
values of parameters, and of artifacts the digest of their content, or where no step starter made one, the key of the
content. Runs of a pipeline in a namespace share one ConfigMap for each component: Kubeflow Pipelines' cache is a
pipeline's, too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from paddlecloud.pipelines.ir.pipeline_spec import Component, Container
from paddlecloud.pipelines.ir.sources import artifact_parameter, quoted, tag, variable
from paddlecloud.pipelines.ir.steps import ORDERS
from paddlecloud.pipelines.ir.values import json_of

CACHE_PREFIX = "pipeline-cache-"
_NAMESPACE = "{{workflow.namespace}}"
"""Argo keeps the ConfigMaps of all workflows in the namespace of its controller (workflow/controller/controller.go,
`NewCacheFactory`), so the names of two namespaces' caches must differ. Argo fills the variable in."""


def memoize(
    pipeline: str, name: str, component: Component, container: Container, template: Mapping[str, Any]
) -> dict[str, Any]:
    given = {each["name"] for each in (template.get("inputs") or {}).get("parameters") or ()}
    pieces = [quoted(component_digest(component, container))]
    artifacts = {artifact_parameter(each) for each in component.input_definitions.artifacts}
    for each in sorted(given):
        text = variable(f"inputs.parameters.{each}")
        pieces.append(quoted(f"\n{each}="))
        pieces.append(f"toJson({_content(text)})" if each in artifacts else f"toJson({text})")
    key = tag(f"sprig.sha256sum({' + '.join(pieces)})")
    return {"key": key, "cache": {"configMap": {"name": cache_name(pipeline, name)}}}


def component_digest(component: Component, container: Container) -> str:
    """Of what a step is, apart from what it is given. Resources and placement do not change what it gives."""
    what = {
        "image": container.image,
        "command": container.command,
        "args": container.args,
        "env": msgspec.to_builtins(container.env),
        "inputs": {name: each.parameter_type for name, each in component.input_definitions.parameters.items()},
        "outputs": msgspec.to_builtins(component.output_definitions),
    }
    return hashlib.sha256(json_of(what).encode()).hexdigest()


def cache_name(pipeline: str, component: str) -> str:
    """The name of a ConfigMap, with the namespace that Argo puts in; long and odd names end with a digest.

    A namespace has no dot: what is before the dot is the namespace's alone, whatever a pipeline is called."""
    wanted = f"{pipeline}-{component.removeprefix('comp-')}"
    name = re.sub(r"[^a-z0-9-]+", "-", wanted.lower()).strip("-")
    if name != wanted or len(name) > 100:
        name = f"{name[:90].rstrip('-')}-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}".lstrip("-")
    return f"{CACHE_PREFIX}{_NAMESPACE}.{name}"


def _content(reference: str) -> str:
    """What an artifact, or each of a list, is: content and metadata, not where it lies."""
    one = "[#.digest ?? #.key ?? #.uri, #.type, #.metadata]"
    whole = f"fromJSON({reference})"
    return f"map(type({whole}) == 'array' ? flatten({whole}) : [{whole}], {{{one}}})"


class Attempt(msgspec.Struct, frozen=True):
    """One execution of a step: the key of its template as it was written, and the inputs of its node."""

    key: str
    inputs: Mapping[str, str]
    parts: Mapping[str, str] = {}
    """What the key has of the component, by name, as lines of text (`parts_of`)."""


def parts_of(template: Mapping[str, Any]) -> dict[str, str]:
    """What a step is, read from its template: what `component_digest` has, one line for each piece."""
    container = template.get("container") or {}
    env = {str(each.get("name")): str(each.get("value")) for each in container.get("env") or ()}
    program = _program(env.pop(ORDERS, ""))
    command, args = program.get("command", container.get("command")), program.get("args", container.get("args"))
    outputs = template.get("outputs") or {}
    return {
        "image": str(container.get("image") or ""),
        "command": _lines(command),
        "args": _lines(args),
        "env": "\n".join(f"{name}={value}" for name, value in env.items()),
        "inputs": _lines(each.get("name") for each in (template.get("inputs") or {}).get("parameters") or ()),
        "outputs": _lines(each.get("name") for each in outputs.get("parameters") or ()),
    }


def _program(orders: str) -> Mapping[str, Any]:
    """Of a step that the step starter starts: the component's own command is in its orders."""
    try:
        found = json.loads(orders) if orders else {}
    except (ValueError, RecursionError):
        return {}  # another version wrote them in another way
    return found if isinstance(found, dict) else {}


def _lines(texts: Iterable[Any] | None) -> str:
    return "\n".join(map(str, texts or ()))


def why_missed(step: Attempt, earlier: Sequence[Attempt]) -> str:
    """Why none of the earlier executions of this step answered it: what the nearest of them had otherwise."""
    if not earlier:
        return "the step has not run before with success, in the runs of this pipeline that still exist"
    nearest = min(earlier, key=lambda each: (each.key != step.key, len(_changed(step, each))))
    if nearest.key != step.key:
        parts = [name for name in step.parts if step.parts[name] != nearest.parts.get(name, "")]
        if not parts:
            return "the component was changed: its image, command, arguments, environment, inputs or outputs"
        return f"the component was changed: {'; '.join(_first_change(name, nearest, step) for name in parts)}"
    changed = _changed(step, nearest)
    if not changed:
        return "nothing changed: the earlier answer was deleted, or the earlier run had not ended by then"
    return "; ".join(f"{name} was {_short(before)}, now {_short(now)}" for name, before, now in changed)


def _first_change(name: str, earlier: Attempt, step: Attempt) -> str:
    """The first line that differs: a command may be a program of hundreds."""
    pairs = zip_longest(earlier.parts.get(name, "").split("\n"), step.parts[name].split("\n"), fillvalue="")
    before, now = next((before, now) for before, now in pairs if before != now)
    return f"{name} was {_short(before.strip())}, now {_short(now.strip())}"


def _changed(step: Attempt, other: Attempt) -> list[tuple[str, str, str]]:
    names = sorted({*step.inputs, *other.inputs})
    pairs = [(name, other.inputs.get(name, ""), step.inputs.get(name, "")) for name in names]
    return [(name, before, now) for name, before, now in pairs if _identity(before) != _identity(now)]


def _identity(text: str) -> Any:
    """Of a reference to an artifact what counts for the key: content, type and metadata, not where it lies."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    references = found if isinstance(found, list) else [found]
    if not references or not all(isinstance(each, dict) and "uri" in each for each in references):
        return text
    return [
        (each.get("digest") or each.get("key") or each["uri"], each.get("type"), each.get("metadata"))
        for each in references
    ]


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")
