"""The spec that a workflow is carried out by: its own, on top of the WorkflowTemplate that it names. Pure.

As Argo's `setStoredWfSpec`: the merged spec is kept in `.status.storedWorkflowTemplateSpec` from the first pass on,
so that a template that is changed or deleted meanwhile changes nothing. What clients change of a workflow that runs
(`entrypoint`, `suspend`, `shutdown`) is taken from the workflow in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.merging import joined
from paddlecloud.local.workflow.templates import TemplateError

Specs = Callable[[str, bool], "Mapping[str, Any] | None"]
"""The spec of a WorkflowTemplate or, with True, of a ClusterWorkflowTemplate; None where there is none."""

STORED_SPEC = "storedWorkflowTemplateSpec"
_CONTROL = ("suspend", "shutdown")


def execution_spec(workflow: Object, specs: Specs) -> Mapping[str, Any]:
    """Raises `TemplateError` where the template is not there and was never stored."""
    spec: dict[str, Any] = workflow.get("spec") or {}
    reference = spec.get("workflowTemplateRef")
    if not reference:
        return spec
    stored = (workflow.get("status") or {}).get(STORED_SPEC)
    if not isinstance(stored, Mapping):
        return merged_spec(spec, specs)
    control = {name: spec[name] for name in _CONTROL if spec.get(name)}
    if spec.get("entrypoint"):
        control["entrypoint"] = spec["entrypoint"]
    return {**{name: value for name, value in stored.items() if name not in _CONTROL}, **control}


def merged_spec(spec: Mapping[str, Any], specs: Specs) -> Mapping[str, Any]:
    reference = spec["workflowTemplateRef"]
    name, clusterwide = str(reference.get("name", "")), bool(reference.get("clusterScope"))
    found = specs(name, clusterwide)
    if found is None:
        raise TemplateError(f"{'ClusterWorkflowTemplate' if clusterwide else 'WorkflowTemplate'} {name} not found")
    return with_arguments(joined(found, spec), spec.get("arguments") or {})


def with_arguments(spec: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter with a value counts as a whole: nothing of the template's `valueFrom` or `default` is left of it."""
    own = {each["name"]: each for each in given.get("parameters") or () if _has_value(each)}
    arguments = spec.get("arguments") or {}
    parameters = [own.get(each["name"], each) for each in arguments.get("parameters") or ()]
    return {**spec, "arguments": {**arguments, **({"parameters": parameters} if parameters else {})}}


def _has_value(parameter: Mapping[str, Any]) -> bool:
    return any(parameter.get(field) is not None for field in ("value", "valueFrom", "default"))
