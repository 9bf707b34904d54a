"""Templates that steps name in other objects, and the arguments that templates need: judged when a workflow is written.

A template that is missing, or that gets no value for an input, would end the workflow later, after other steps ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.execution_spec import Specs
from paddlecloud.local.workflow.names import GROUP
from paddlecloud.local.workflow.templates import Template, templates_of
from paddlecloud.local.workflow.unreadable import UNREADABLE
from paddlecloud.local.workflow.validation.artifacts import is_missing
from paddlecloud.local.workflow.validation.problems import Problem, invalid, required
from paddlecloud.local.workflow.variables import tags_in


def named_templates(workflow: Object) -> set[tuple[str, bool]]:
    """Names of the objects whose templates a workflow uses, and whether each is a ClusterWorkflowTemplate. A workflow
    with odd values names none: it is refused."""
    spec = workflow.get("spec")
    if not isinstance(spec, dict):
        return set()
    try:
        steps = [step for template in templates_of(spec).values() for _, step in _steps(template)]
        found = [spec.get("workflowTemplateRef"), *(step.get("templateRef") for step in steps)]
        return {(str(each.get("name", "")), bool(each.get("clusterScope"))) for each in found if each}
    except UNREADABLE:
        return set()


def referred(templates: Iterable[Template], specs: Specs) -> Iterator[Problem]:
    """Steps with `templateRef`. Those inside the templates that they name are found out when they run."""
    known: dict[tuple[str, bool], Mapping[str, Template] | None] = {}
    for index, template in enumerate(templates):
        for place, step in _steps(template):
            reference = step.get("templateRef")
            if not isinstance(reference, Mapping):
                continue
            path = f"spec.templates[{index}].{place}"
            name, wanted = str(reference.get("name", "")), str(reference.get("template", ""))
            clusterwide = bool(reference.get("clusterScope"))
            if "{{" in name + wanted:
                continue
            if (name, clusterwide) not in known:
                spec = specs(name, clusterwide)
                known[name, clusterwide] = None if spec is None else templates_of(spec)
            found = known[name, clusterwide]
            if found is None or wanted not in found:
                kind = "ClusterWorkflowTemplate" if clusterwide else "WorkflowTemplate"
                missing = (
                    f"{kind} {name[:60]} not found" if found is None else f"{kind} {name[:60]} has no such template"
                )
                value = name if found is None else wanted
                field = "name" if found is None else "template"
                yield invalid(f"{path}.templateRef.{field}", f"{value[:200]!r}: {missing}")
            else:
                yield from supplied(step.get("arguments"), found[wanted], f"{path}.arguments.parameters")


def _steps(template: Template) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for outer, group in enumerate(template.get("steps") or ()):
        for inner, step in enumerate(group):
            yield f"steps[{outer}][{inner}]", step
    for index, task in enumerate((template.get("dag") or {}).get("tasks") or ()):
        yield f"dag.tasks[{index}]", task


_NAMED = ("workflow.parameters.", "workflow.labels.", "workflow.annotations.")


def unknown_variables(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Parameters, labels and annotations of the workflow that its templates name and that it does not have, as Argo's
    `resolveAllVariables`: a step would get the text of the tag."""
    given, extra = (spec.get("arguments") or {}).get("parameters") or (), spec.get("workflowMetadata") or {}
    known = {f"workflow.parameters.{each['name']}" for each in given} | {"workflow.parameters.json"}
    known |= {"workflow.labels.json", "workflow.annotations.json"}
    for part, sources in (("labels", ("labels", "labelsFrom")), ("annotations", ("annotations",))):
        every = [metadata.get(part) or {}, *(extra.get(source) or {} for source in sources)]
        known |= {f"workflow.{part}.{name}" for each in every for name in each}
    for index, template in enumerate(spec.get("templates") or ()):
        for tag in _tags(template):
            if tag.startswith(_NAMED) and tag not in known and "{{" not in tag and GROUP not in tag:
                yield invalid(f"spec.templates[{index}]", f"failed to resolve {{{{{tag[:200]}}}}}")


def _tags(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from tags_in(value)
        return
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _tags(each)


def supplied(arguments: Any, template: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """Inputs that have no value of their own and get none."""
    inputs, arguments = template.get("inputs") or {}, arguments or {}
    if not isinstance(inputs, dict) or not isinstance(arguments, dict):
        return
    given = {each.get("name") for each in arguments.get("parameters") or () if isinstance(each, dict)}
    for parameter in inputs.get("parameters") or ():
        if not isinstance(parameter, dict) or parameter.get("name") in given:
            continue
        if not any(parameter.get(field) is not None for field in ("value", "default", "valueFrom")):
            yield required(path, f"inputs.parameters.{parameter['name']} was not supplied")
    given = {each.get("name") for each in arguments.get("artifacts") or () if isinstance(each, dict)}
    for artifact in inputs.get("artifacts") or ():
        if isinstance(artifact, dict) and artifact.get("name") not in given and is_missing(artifact):
            place = f"{path.removesuffix('parameters')}artifacts"
            yield required(place, f"inputs.artifacts.{artifact.get('name')} was not supplied")
