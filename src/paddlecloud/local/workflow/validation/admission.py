"""Workflows that cannot be carried out are refused when they are written, by the name of the field.

Argo's own server takes anything and its controller fails it later (`argo lint` would have said so). Here a mistake is
answered before anything starts; so is a field that this platform does not serve, rather than being ignored. A workflow
is judged with its templates (`templates.py`) and those that it names (`referred.py`). What is in ConfigMaps is found
out when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.kube.selectors import LabelSelector
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.workflow.decision.metrics import metric_problems
from paddlecloud.local.workflow.durations import BadDuration, seconds
from paddlecloud.local.workflow.execution_spec import Specs, merged_spec
from paddlecloud.local.workflow.names import CLUSTER_TEMPLATES, CRON_WORKFLOWS, GROUP, TEMPLATES, WORKFLOWS
from paddlecloud.local.workflow.templates import TemplateError, templates_of, with_defaults
from paddlecloud.local.workflow.unreadable import UNREADABLE
from paddlecloud.local.workflow.validation.artifacts import (
    repository_problems,
)
from paddlecloud.local.workflow.validation.fields import (
    MOST_NAMED,
    not_whole_numbers,
    shortened,
    unserved_fields,
    wrong_types,
)
from paddlecloud.local.workflow.validation.locks import lock_problems
from paddlecloud.local.workflow.validation.pods import (
    claim_problems,
    patch_problems,
)
from paddlecloud.local.workflow.validation.problems import (
    Problem,
    invalid_value,
    required,
)
from paddlecloud.local.workflow.validation.referred import referred, supplied, unknown_variables
from paddlecloud.local.workflow.validation.schedules import schedule_problems
from paddlecloud.local.workflow.validation.templates import (
    argument_problems,
    hook_problems,
    known_templates,
    template_problems,
)

_SPEC = frozenset((
    "entrypoint", "arguments", "templates", "serviceAccountName", "automountServiceAccountToken", "volumes",
    "parallelism", "nodeSelector", "affinity", "tolerations", "schedulerName", "priorityClassName", "priority",
    "securityContext", "hostAliases", "imagePullSecrets", "hostNetwork", "dnsPolicy", "dnsConfig", "podMetadata",
    "onExit", "suspend", "shutdown", "retryStrategy", "templateDefaults", "workflowTemplateRef",
    "activeDeadlineSeconds", "podGC", "ttlStrategy", "artifactGC",
    "volumeClaimTemplates", "volumeClaimGC", "podSpecPatch", "executor",
    "hooks", "synchronization", "workflowMetadata", "artifactRepositoryRef", "archiveLogs", "podDisruptionBudget",
    "podPriorityClassName", "metrics",
))  # fmt: skip
_CRON = frozenset((
    "workflowSpec", "schedule", "schedules", "timezone", "concurrencyPolicy", "startingDeadlineSeconds", "suspend",
    "successfulJobsHistoryLimit", "failedJobsHistoryLimit", "workflowMetadata", "stopStrategy", "when",
))  # fmt: skip
_SPEC_TYPES: dict[str, type] = {
    "podGC": dict, "ttlStrategy": dict, "workflowTemplateRef": dict, "templateDefaults": dict, "podMetadata": dict,
    "podDisruptionBudget": dict, "retryStrategy": dict, "volumes": list, "tolerations": list,
}  # fmt: skip
MOST_DEFAULTS = 16 * 1024 * 1024
"""Bytes of the defaults of all templates: each template is judged with its own copy."""


SpecOf = Callable[[str, str, bool], "Mapping[str, Any] | None"]
"""Namespace, name, whether it is a ClusterWorkflowTemplate: its spec, or None where there is none."""


def judge(
    info: KindInfo,
    new: Object,
    old: Object | None,
    options: WriteOptions,
    *,
    specs: SpecOf = lambda namespace, name, clusterwide: None,
    report: Callable[[str, Exception], None] = lambda what, why: None,
) -> None:
    """An admission policy. What is stored already may be written again as it is: by its controller, or to stop it.

    `report` logs what cannot be read.
    """
    kinds = {WORKFLOWS.kind, TEMPLATES.kind, CLUSTER_TEMPLATES.kind, CRON_WORKFLOWS.kind}
    if info.resource.group != GROUP or info.kind not in kinds:
        return
    try:
        found: list[tuple[str, str, str]] = list(islice(_problems(info.kind, new, old, specs), MOST_NAMED))
    except UNREADABLE as why:
        report(f"a {info.kind} that was refused", why)
        found = [invalid_value("spec", "…", f"a field has a value of another type than it should: {str(why)[:200]}")]
    if found:
        raise errors.invalid(info.kind, str(new["metadata"].get("name", "")), found, group=GROUP)


def _problems(kind: str, new: Object, old: Object | None, specs: SpecOf) -> Iterator[Problem]:
    spec = new.get("spec")
    if not isinstance(spec, dict):
        yield required("spec")
        return
    if kind == CRON_WORKFLOWS.kind:
        if old is not None and old.get("spec") == spec:
            return
        yield from _cron_workflow(str(new["metadata"].get("name", "")), spec)
        return
    before = old.get("spec") if old is not None else None
    yield from _control(spec, before if isinstance(before, dict) else {})
    if old is not None and _without_control(old) == _without_control(new):
        return
    if kind == WORKFLOWS.kind:
        namespace = str(new["metadata"].get("namespace", ""))
        yield from _workflow(new["metadata"], spec, lambda name, clusterwide: specs(namespace, name, clusterwide))
    else:
        yield from _spec(spec)


def _cron_workflow(name: str, spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Templates of other objects may come later: they are looked up when a workflow is due."""
    yield from unserved_fields(spec, _CRON, "spec")
    yield from schedule_problems(name, spec)
    inner = spec.get("workflowSpec")
    if not isinstance(inner, dict):
        yield required("spec.workflowSpec")
        return
    refers = bool(inner.get("workflowTemplateRef"))
    every = _spec(inner) if refers else _complete(inner)
    yield from (each._replace(field=each.field.replace("spec", "spec.workflowSpec", 1)) for each in every)


def _workflow(metadata: Mapping[str, Any], spec: Mapping[str, Any], specs: Specs) -> Iterator[Problem]:
    """A workflow is judged as it will be carried out: on top of the template that it names."""
    if reference := spec.get("workflowTemplateRef"):
        if not isinstance(reference, dict):
            yield invalid_value(
                "spec.workflowTemplateRef", shortened(reference), "must be a map with the name of a template"
            )
            return
        try:
            spec = merged_spec(spec, specs)
        except TemplateError as why:
            yield invalid_value("spec.workflowTemplateRef", shortened(reference.get("name", "")), str(why))
            return
    yield from _complete(spec)
    yield from referred(templates_of(spec).values(), specs)
    yield from unknown_variables(metadata, spec)


def _complete(spec: Mapping[str, Any]) -> Iterator[Problem]:
    """A spec that can be carried out: it has an entrypoint, and arguments for it."""
    yield from _spec(spec)
    names = templates_of(spec)
    entry = spec.get("entrypoint")
    if not entry:
        yield required("spec.entrypoint", "the template to begin with")
    elif str(entry) not in names:
        yield invalid_value("spec.entrypoint", entry, known_templates(names))
    else:
        yield from supplied(spec.get("arguments"), names[str(entry)], "spec.arguments.parameters")
    for index, parameter in enumerate((spec.get("arguments") or {}).get("parameters") or ()):
        if parameter.get("value") is None and parameter.get("valueFrom") is None:
            place = f"spec.arguments.parameters[{index}].value"
            yield required(place, f"{parameter['name']} has neither value nor valueFrom")


def _control(spec: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[Problem]:
    """What clients may change of a workflow that runs."""
    if spec.get("suspend") not in (None, True, False, before.get("suspend")):
        yield invalid_value("spec.suspend", shortened(spec["suspend"]), "must be true or false")
    if spec.get("shutdown") not in (None, "", "Stop", "Terminate", before.get("shutdown")):
        yield invalid_value("spec.shutdown", shortened(spec["shutdown"]), "must be Stop or Terminate")


def _without_control(obj: Object) -> Any:
    """The spec without what clients change to control a workflow that runs."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return spec
    return {key: value for key, value in spec.items() if key not in ("suspend", "shutdown")}


def _spec(spec: Mapping[str, Any]) -> Iterator[Problem]:
    yield from unserved_fields(spec, _SPEC, "spec")
    yield from wrong_types(spec, _SPEC_TYPES, "spec")
    yield from not_whole_numbers(spec, ("activeDeadlineSeconds", "parallelism", "priority"), "spec")
    if isinstance(ttl := spec.get("ttlStrategy") or {}, dict):
        fields = ("secondsAfterCompletion", "secondsAfterSuccess", "secondsAfterFailure")
        yield from not_whole_numbers(ttl, fields, "spec.ttlStrategy")
    if isinstance(garbage := spec.get("podGC") or {}, dict):
        yield from _pod_gc(garbage, "spec.podGC")
    yield from patch_problems(spec, "spec")
    yield from repository_problems(spec)
    yield from metric_problems(spec, "spec")
    yield from claim_problems(spec)
    templates = spec.get("templates") or []
    if not isinstance(templates, list) or not all(isinstance(each, dict) for each in templates):
        yield invalid_value("spec.templates", "…", "must be a list of templates")
        return
    names = templates_of(spec)
    if len(names) < len(templates):
        yield invalid_value("spec.templates", "…", "names of templates must be unique")
    yield from hook_problems(spec, names, "spec")
    yield from lock_problems(spec, "spec")
    yield from argument_problems(spec.get("arguments"), "spec.arguments")
    defaults = spec.get("templateDefaults")
    if defaults and len(msgspec.json.encode(defaults)) * len(templates) > MOST_DEFAULTS:
        yield invalid_value("spec.templateDefaults", "…", f"with {len(templates):,} templates it is too much")
        return
    for index, template in enumerate(templates):
        yield from template_problems(_on_top_of(defaults, template), names, f"spec.templates[{index}]")


def _on_top_of(defaults: Any, template: Mapping[str, Any]) -> Mapping[str, Any]:
    """A template as it will be carried out; one whose kind is not clear is judged as it stands."""
    try:
        return with_defaults(dict(template), defaults if isinstance(defaults, dict) else {})
    except TemplateError:
        return template


def _pod_gc(rule: Mapping[str, Any], path: str) -> Iterator[Problem]:
    try:
        if rule.get("deleteDelayDuration"):
            seconds(rule["deleteDelayDuration"])
    except BadDuration as why:
        yield invalid_value(f"{path}.deleteDelayDuration", shortened(rule["deleteDelayDuration"]), str(why)[:200])
    try:
        if rule.get("labelSelector"):
            LabelSelector.from_dict(rule["labelSelector"])
    except (AttributeError, LookupError, TypeError, ValueError):
        yield invalid_value(f"{path}.labelSelector", "…", "must be a label selector")
