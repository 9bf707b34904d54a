"""Templates of a workflow: which one a step names, and what it is once its arguments are known. Pure.

As Argo's `ProcessArgs` (workflow/common): an input takes its argument, else its value, else its default; tags are
substituted twice, first the workflow's own variables, then the inputs, which may have been made of those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.local.workflow.durations import seconds
from paddlecloud.local.workflow.expressions.budget import take_work
from paddlecloud.local.workflow.expressions.values import shown, to_json
from paddlecloud.local.workflow.merging import joined
from paddlecloud.local.workflow.variables import substitute

Template = dict[str, Any]
Holder = Mapping[str, Any]
"""A step, a task or a hook: it names a template, or has one inline."""

POD_KINDS = ("container", "script", "resource", "containerSet", "data", "http")
GROUP_KINDS = ("steps", "dag")
KINDS = (*POD_KINDS, *GROUP_KINDS, "suspend", "plugin")
NODE_TYPES = {
    "steps": "Steps",
    "dag": "DAG",
    "suspend": "Suspend",
    "plugin": "Plugin",
    **dict.fromkeys(POD_KINDS, "Pod"),
    "http": "HTTP",
}
"""Of the node that carries a template out, by the kind of the template."""


class TemplateError(ValueError):
    """A template is missing, or cannot be carried out with these arguments."""


def kind_of(template: Template) -> str:
    found = [kind for kind in KINDS if kind in template]
    if len(found) != 1:
        name = template.get("name", "")
        raise TemplateError(f"template {name!r} has {'no' if not found else 'more than one'} of {', '.join(KINDS)}")
    return found[0]


STORED_TEMPLATES = "storedTemplates"


def stored_templates(workflow: Mapping[str, Any]) -> dict[str, Template]:
    """Those of the status, by Argo's ids: `namespaced/TEMPLATE-OBJECT/TEMPLATE`."""
    found = (workflow.get("status") or {}).get(STORED_TEMPLATES)
    return {key: value for key, value in (found or {}).items() if isinstance(value, dict)}


@dataclass(frozen=True)
class Library:
    """Where templates are looked up: `own` are those of this workflow, or of the WorkflowTemplate it came from.

    `others` gives the spec of a WorkflowTemplate, or of a ClusterWorkflowTemplate; None where there is none. What is
    used of those is added to `stored`, and taken from there from then on: changes of a template do not reach a
    workflow that runs (Argo's `SetStoredTemplate`).
    """

    own: Mapping[str, Template]
    scope: str
    others: Callable[[str, bool], Mapping[str, Any] | None] = field(default=lambda name, clusterwide: None)
    stored: dict[str, Template] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)
    """`podMetadata` of the object that the templates came from."""
    opened: dict[str, Library] = field(default_factory=dict)
    """Those of other objects, by their scope: steps name them thousands of times in a pass."""

    def find(self, holder: Holder) -> tuple[Template, Library]:
        if inline := holder.get("inline"):
            return inline, self
        if reference := holder.get("templateRef"):
            return self._referred(reference)
        name = str(holder.get("template", ""))
        if self.scope.startswith("local/"):
            if name not in self.own:
                raise TemplateError(f"template {name} not found")
            return self.own[name], self
        return self._kept(name, f"template {name} not found"), self

    def declared(self, holder: Holder) -> Template | None:
        """None where there is none: it was deleted while its node ran, or was never there."""
        try:
            return self.find(holder)[0]
        except TemplateError:
            return None

    def _referred(self, reference: Mapping[str, Any]) -> tuple[Template, Library]:
        name, wanted = str(reference.get("name", "")), str(reference.get("template", ""))
        clusterwide = bool(reference.get("clusterScope"))
        kind = "ClusterWorkflowTemplate" if clusterwide else "WorkflowTemplate"
        scope = f"{'cluster' if clusterwide else 'namespaced'}/{name}"
        library = self.opened.get(scope)
        if library is None:
            spec = self.others(name, clusterwide)
            if spec is None and f"{scope}/{wanted}" not in self.stored:
                raise TemplateError(f"{kind} {name} not found")
            spec = spec or {}
            metadata = spec.get("podMetadata") or {}
            library = Library(templates_of(spec), scope, self.others, self.stored, metadata, self.opened)
            self.opened[scope] = library
        return library._kept(wanted, f"template {wanted} not found in {kind} {name}"), library

    def _kept(self, name: str, missing: str) -> Template:
        identity = f"{self.scope}/{name}"
        if identity not in self.stored:
            if name not in self.own:
                raise TemplateError(missing)
            self.stored[identity] = self._with_labels(self.own[name])
        return self.stored[identity]

    def _with_labels(self, template: Template) -> Template:
        """As Argo's `addPodMetadata`: the template's own labels and annotations count first."""
        if not self.labels:
            return template
        own = template.get("metadata") or {}
        both = {part: {**(self.labels.get(part) or {}), **(own.get(part) or {})} for part in ("labels", "annotations")}
        return {**template, "metadata": {**own, **{part: value for part, value in both.items() if value}}}


def templates_of(spec: Mapping[str, Any]) -> dict[str, Template]:
    return {str(each.get("name", "")): each for each in spec.get("templates") or ()}


def with_defaults(template: Template, defaults: Mapping[str, Any]) -> Template:
    """On top of `templateDefaults`; what those say of other kinds of templates does not count."""
    if not defaults:
        return template
    own = kind_of(template)
    return joined({key: value for key, value in defaults.items() if key == own or key not in KINDS}, template)


def with_timeout(template: Template) -> Template:
    """`timeout` of a template with a pod is a deadline of the pod, in whole seconds; the shorter of the two counts."""
    if not template.get("timeout") or kind_of(template) not in POD_KINDS:
        return template
    lasts, deadline = max(1, math.ceil(seconds(template["timeout"]))), template.get("activeDeadlineSeconds")
    return {**template, "activeDeadlineSeconds": lasts if deadline is None else min(lasts, int(str(deadline)))}


def text_of(value: Any) -> str:
    """Values of parameters are texts; what YAML made a number or a bool is shown as Go shows it."""
    if isinstance(value, str):
        return value
    return to_json(value) if isinstance(value, (dict, list)) else shown(value)


ConfigMapValue = Callable[[str, str], "str | None"]


def processed(
    template: Template,
    arguments: Mapping[str, Any],
    variables: Mapping[str, Any],
    *,
    config_map: ConfigMapValue = lambda name, key: None,
) -> Template:
    """The template with its inputs filled in and their tags replaced. What later passes know stays as it is."""
    inputs = dict(template.get("inputs") or {})
    given = {each["name"]: each for each in arguments.get("parameters") or ()}
    inputs["parameters"] = [
        _filled(parameter, given.get(parameter["name"]), variables, config_map)
        for parameter in inputs.get("parameters") or ()
    ]
    artifacts = {each["name"]: each for each in arguments.get("artifacts") or ()}
    inputs["artifacts"] = [
        _with_artifact(artifact, artifacts.get(artifact["name"])) for artifact in inputs.get("artifacts") or ()
    ]
    filled = {key: value for key, value in inputs.items() if value}
    return substituted({**template, "inputs": filled}, variables)


def substituted(template: Template, variables: Mapping[str, Any]) -> Template:
    first: Template = substitute(template, variables, lenient=True)
    second: Template = substitute(first, {**variables, **_input_variables(first)}, lenient=True)
    return second


def _filled(
    parameter: Mapping[str, Any],
    argument: Mapping[str, Any] | None,
    variables: Mapping[str, Any],
    config_map: ConfigMapValue,
) -> dict[str, Any]:
    made = dict(parameter)
    if "value" not in made and "default" in made:
        made["value"] = made["default"]
    if argument is not None:
        for field_name in ("value", "valueFrom"):
            if argument.get(field_name) is not None:
                made.pop("valueFrom", None)
                made[field_name] = argument[field_name]
    reference = (made.get("valueFrom") or {}).get("configMapKeyRef")
    if reference:
        made["value"] = _from_config_map(made, substitute(dict(reference), variables, lenient=False), config_map)
        made.pop("valueFrom")
    if made.get("value") is None:
        raise TemplateError(f"inputs.parameters.{made['name']} was not supplied")
    made["value"] = text_of(made["value"])
    return made


def _from_config_map(parameter: Mapping[str, Any], reference: Mapping[str, Any], config_map: ConfigMapValue) -> str:
    name, key = str(reference.get("name", "")), str(reference.get("key", ""))
    value = config_map(name, key)
    if value is None:
        value = (parameter.get("valueFrom") or {}).get("default")
    if value is None:
        raise TemplateError(
            f"unable to retrieve inputs.parameters.{parameter['name']}: ConfigMap {name} has no key {key}"
        )
    return text_of(value)


_LOCATIONS = ("artifactory", "azure", "gcs", "git", "hdfs", "http", "oss", "raw", "s3")


def _is_location(value: Any) -> bool:
    """As Argo's `HasLocation`: an address that is empty is none."""
    return value is not None and not (isinstance(value, dict) and value.get("url") == "")


def _with_artifact(artifact: Mapping[str, Any], argument: Mapping[str, Any] | None) -> dict[str, Any]:
    located = any(_is_location(artifact.get(location)) for location in _LOCATIONS)
    if argument is None:
        if not located and not artifact.get("optional"):
            raise TemplateError(f"inputs.artifacts.{artifact['name']} was not supplied")
        return {key: value for key, value in artifact.items() if key not in _LOCATIONS or _is_location(value)}
    placed = {key: argument[key] for key in (*_LOCATIONS, "archive", "subPath") if argument.get(key) is not None}
    own = {key: value for key, value in artifact.items() if key not in _LOCATIONS or not placed}
    return {**placed, **own} if placed else _with_artifact(artifact, None)


def _values_in(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(_values_in(each) for each in inner)


def _input_variables(template: Template) -> dict[str, str]:
    inputs, outputs = template.get("inputs") or {}, template.get("outputs") or {}
    parameters = inputs.get("parameters") or []
    known = {f"inputs.parameters.{each['name']}": text_of(each["value"]) for each in parameters if "value" in each}
    take_work(_values_in(parameters))
    known["inputs.parameters"] = to_json(parameters)
    for side, artifacts in (("inputs", inputs.get("artifacts")), ("outputs", outputs.get("artifacts"))):
        known |= {f"{side}.artifacts.{each['name']}.path": each["path"] for each in artifacts or () if each.get("path")}
    for each in outputs.get("parameters") or ():
        if path := (each.get("valueFrom") or {}).get("path"):
            known[f"outputs.parameters.{each['name']}.path"] = path
    return known
