"""Workflows that cannot be carried out are refused when they are written, by the name of the field.

Argo's own server takes anything and its controller fails it later (`argo lint` would have said so). Here a mistake is
answered before anything starts; so is a field that this platform does not serve, rather than being ignored. A workflow
is judged with the templates that it names (`referred.py`). What is in ConfigMaps is found out when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from paddlecloud.kube import errors
from paddlecloud.kube.circles import circle_in
from paddlecloud.kube.resource import Object
from paddlecloud.kube.selectors import LabelSelector
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.workflow.decision.dag import depends_on
from paddlecloud.local.workflow.decision.hooks import EXIT
from paddlecloud.local.workflow.decision.metrics import metric_problems
from paddlecloud.local.workflow.durations import BadDuration, seconds
from paddlecloud.local.workflow.execution_spec import Specs, merged_spec
from paddlecloud.local.workflow.names import CLUSTER_TEMPLATES, CRON_WORKFLOWS, GROUP, TEMPLATES, WORKFLOWS
from paddlecloud.local.workflow.templates import KINDS, POD_KINDS, TemplateError, templates_of, with_defaults
from paddlecloud.local.workflow.unreadable import UNREADABLE
from paddlecloud.local.workflow.validation.artifacts import (
    archive_problems,
    artifact_problems,
    repository_problems,
)
from paddlecloud.local.workflow.validation.containers import unknown_fields
from paddlecloud.local.workflow.validation.locks import lock_problems
from paddlecloud.local.workflow.validation.parameters import parameter_problems
from paddlecloud.local.workflow.validation.pods import (
    claim_problems,
    container_problems,
    container_set_problems,
    data_problems,
    http_problems,
    patch_problems,
    resource_problems,
)
from paddlecloud.local.workflow.validation.problems import (
    EMPTY,
    Problem,
    duplicate,
    invalid_value,
    required,
    unserved,
)
from paddlecloud.local.workflow.validation.referred import referred, supplied, unknown_variables
from paddlecloud.local.workflow.validation.schedules import schedule_problems

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
_TEMPLATE = frozenset((
    "name", "inputs", "outputs", "metadata", "container", "script", "resource", "containerSet", "steps", "dag",
    "suspend", "sidecars", "initContainers", "volumes", "nodeSelector", "affinity", "tolerations", "schedulerName",
    "priorityClassName", "securityContext", "hostAliases", "serviceAccountName", "automountServiceAccountToken",
    "retryStrategy", "activeDeadlineSeconds", "parallelism", "annotations", "daemon", "podSpecPatch",
    "executor",
    "synchronization", "memoize", "timeout", "failFast", "archiveLocation", "metrics", "data", "http", "plugin",
))  # fmt: skip
_STEP = frozenset((
    "name", "template", "templateRef", "inline", "arguments", "when", "withItems", "withParam", "withSequence",
    "continueOn", "hooks", "onExit",
))  # fmt: skip
_TASK = _STEP | {"depends", "dependencies"}
_INPUTS, _OUTPUTS = frozenset(("parameters", "artifacts")), frozenset(("parameters", "artifacts"))
_SPEC_TYPES: dict[str, type] = {
    "podGC": dict, "ttlStrategy": dict, "workflowTemplateRef": dict, "templateDefaults": dict, "podMetadata": dict,
    "podDisruptionBudget": dict, "retryStrategy": dict, "volumes": list, "tolerations": list,
}  # fmt: skip
_TEMPLATE_TYPES: dict[str, type] = {
    "inputs": dict, "outputs": dict, "metadata": dict, "retryStrategy": dict, "volumes": list, "tolerations": list,
    "sidecars": list, "initContainers": list,
}  # fmt: skip
_TYPE_NAMES: dict[type, str] = {dict: "map", list: "list"}
MOST_NAMED = 10
"""Causes in one answer, and names in one of them."""


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
    yield from _fields(spec, _CRON, "spec")
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
                "spec.workflowTemplateRef", _short(reference), "must be a map with the name of a template"
            )
            return
        try:
            spec = merged_spec(spec, specs)
        except TemplateError as why:
            yield invalid_value("spec.workflowTemplateRef", _short(reference.get("name", "")), str(why))
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
        yield invalid_value("spec.entrypoint", entry, _nearest(names))
    else:
        yield from supplied(spec.get("arguments"), names[str(entry)], "spec.arguments.parameters")
    for index, parameter in enumerate((spec.get("arguments") or {}).get("parameters") or ()):
        if parameter.get("value") is None and parameter.get("valueFrom") is None:
            place = f"spec.arguments.parameters[{index}].value"
            yield required(place, f"{parameter['name']} has neither value nor valueFrom")


def _control(spec: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[Problem]:
    """What clients may change of a workflow that runs."""
    if spec.get("suspend") not in (None, True, False, before.get("suspend")):
        yield invalid_value("spec.suspend", _short(spec["suspend"]), "must be true or false")
    if spec.get("shutdown") not in (None, "", "Stop", "Terminate", before.get("shutdown")):
        yield invalid_value("spec.shutdown", _short(spec["shutdown"]), "must be Stop or Terminate")


def _without_control(obj: Object) -> Any:
    """The spec without what clients change to control a workflow that runs."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return spec
    return {key: value for key, value in spec.items() if key not in ("suspend", "shutdown")}


def _fields(value: Mapping[str, Any], served: frozenset[str], path: str) -> Iterator[Problem]:
    others = [name for name in value if name not in served and value[name] not in EMPTY]
    yield from (unserved(path, name, served) for name in others)


def _spec(spec: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _fields(spec, _SPEC, "spec")
    yield from _types(spec, _SPEC_TYPES, "spec")
    yield from _whole_numbers(spec, ("activeDeadlineSeconds", "parallelism", "priority"), "spec")
    if isinstance(ttl := spec.get("ttlStrategy") or {}, dict):
        fields = ("secondsAfterCompletion", "secondsAfterSuccess", "secondsAfterFailure")
        yield from _whole_numbers(ttl, fields, "spec.ttlStrategy")
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
    yield from _hooks(spec, names, "spec")
    yield from lock_problems(spec, "spec")
    yield from _arguments(spec.get("arguments"), "spec.arguments")
    defaults = spec.get("templateDefaults")
    for index, template in enumerate(templates):
        yield from _template(_on_top_of(defaults, template), names, f"spec.templates[{index}]")


def _on_top_of(defaults: Any, template: Mapping[str, Any]) -> Mapping[str, Any]:
    """A template as it will be carried out; one whose kind is not clear is judged as it stands."""
    try:
        return with_defaults(dict(template), defaults if isinstance(defaults, dict) else {})
    except TemplateError:
        return template


def _types(value: Mapping[str, Any], types: Mapping[str, type], path: str) -> Iterator[Problem]:
    for name, wanted in types.items():
        if value.get(name) is not None and not isinstance(value[name], wanted):
            yield invalid_value(f"{path}.{name}", _short(value[name]), f"must be a {_TYPE_NAMES[wanted]}")


def _whole_numbers(value: Mapping[str, Any], names: tuple[str, ...], path: str) -> Iterator[Problem]:
    """As Argo's API types have them: no texts, no fractions, and no more than 64 bits hold."""
    for name in names:
        number = value.get(name)
        if number is not None and (type(number) is not int or abs(number) >= 2**63):
            yield invalid_value(f"{path}.{name}", _short(number), "must be a whole number")


def _pod_gc(rule: Mapping[str, Any], path: str) -> Iterator[Problem]:
    try:
        if rule.get("deleteDelayDuration"):
            seconds(rule["deleteDelayDuration"])
    except BadDuration as why:
        yield invalid_value(f"{path}.deleteDelayDuration", _short(rule["deleteDelayDuration"]), str(why)[:200])
    try:
        if rule.get("labelSelector"):
            LabelSelector.from_dict(rule["labelSelector"])
    except (AttributeError, LookupError, TypeError, ValueError):
        yield invalid_value(f"{path}.labelSelector", "…", "must be a label selector")


def _short(value: Any) -> str:
    return str(value)[:60]


def _nearest(names: Mapping[str, Any]) -> str:
    first = ", ".join(each[:60] for each in sorted(names)[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"there is no such template; there are: {first or 'none'}{more}"


def _arguments(arguments: Any, path: str) -> Iterator[Problem]:
    if arguments is None:
        return
    if not isinstance(arguments, dict):
        yield invalid_value(path, arguments, "must be a map with parameters")
        return
    yield from _fields(arguments, _INPUTS, path)
    yield from parameter_problems(arguments.get("parameters"), f"{path}.parameters")
    yield from artifact_problems(arguments.get("artifacts"), f"{path}.artifacts", "argument")


def _template(template: Any, names: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if not isinstance(template, dict):
        yield invalid_value(path, "…", "must be a template")
        return
    yield from _fields(template, _TEMPLATE, path)
    yield from unknown_fields(template, path)
    yield from _types(template, _TEMPLATE_TYPES, path)
    yield from _whole_numbers(template, ("parallelism",), path)
    yield from patch_problems(template, path)
    yield from lock_problems(template, path)
    yield from archive_problems(template, path)
    yield from metric_problems(template, path)
    yield from _memoize(template.get("memoize"), f"{path}.memoize")
    if not isinstance(template.get("name", ""), str):
        yield invalid_value(f"{path}.name", template["name"], "must be a text: put it in quotes")
    kinds = [kind for kind in KINDS if kind in template]
    if len(kinds) != 1:
        yield invalid_value(path, template.get("name", ""), f"must have exactly one of {', '.join(sorted(KINDS))}")
        return
    for side, served in (("inputs", _INPUTS), ("outputs", _OUTPUTS)):
        if isinstance(value := template.get(side), dict):
            yield from _fields(value, served, f"{path}.{side}")
            yield from parameter_problems(value.get("parameters"), f"{path}.{side}.parameters")
            use = f"pod {side}" if kinds[0] in POD_KINDS else side
            yield from artifact_problems(value.get("artifacts"), f"{path}.{side}.artifacts", use)
    check = _CHECKS.get(kinds[0])
    if check is not None:
        yield from check(template[kinds[0]], names, f"{path}.{kinds[0]}")


def _memoize(memoize: Any, path: str) -> Iterator[Problem]:
    if memoize is None:
        return
    cache = memoize.get("cache") if isinstance(memoize, dict) else None
    config_map = cache.get("configMap") if isinstance(cache, dict) else None
    if not isinstance(config_map, dict) or not isinstance(config_map.get("name"), str) or not config_map["name"]:
        yield required(f"{path}.cache.configMap.name", "the ConfigMap with the entries")
    elif not memoize.get("key"):
        yield required(f"{path}.key")


def _hooks(holder: Mapping[str, Any], names: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if (handler := holder.get("onExit")) and str(handler) not in names:
        yield invalid_value(f"{path}.onExit", handler, _nearest(names))
    hooks = holder.get("hooks") or {}
    if not isinstance(hooks, dict) or not all(isinstance(hook, dict) for hook in hooks.values()):
        yield invalid_value(f"{path}.hooks", "…", "must be a map of hooks")
        return
    for name, hook in hooks.items():
        place = f"{path}.hooks.{str(name)[:60]}"
        if name != EXIT and not hook.get("expression"):
            yield required(f"{place}.expression", "when the hook is to run")
        if not hook.get("templateRef") and str(hook.get("template", "")) not in names:
            yield invalid_value(f"{place}.template", hook.get("template", ""), _nearest(names))
        yield from _arguments(hook.get("arguments"), f"{place}.arguments")


def _steps(groups: Any, names: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
        yield invalid_value(path, "…", "must be a list of lists of steps")
        return
    seen: set[str] = set()
    for outer, group in enumerate(groups):
        for inner, step in enumerate(group):
            yield from _step(step, names, f"{path}[{outer}][{inner}]", seen)


def _step(
    step: Any, names: Mapping[str, Any], path: str, seen: set[str], served: frozenset[str] = _STEP
) -> Iterator[Problem]:
    if not isinstance(step, dict) or not step.get("name"):
        yield required(f"{path}.name")
        return
    if not isinstance(step["name"], str):
        yield invalid_value(f"{path}.name", step["name"], "must be a text: put it in quotes")
        return
    if step["name"] in seen:
        yield duplicate(f"{path}.name", step["name"])
    seen.add(str(step["name"]))
    others = [name for name in step if name in _TASK - served]
    yield from (invalid_value(f"{path}.{name}", _short(step[name]), "only tasks of a dag have it") for name in others)
    yield from _fields({name: value for name, value in step.items() if name not in _TASK}, served, path)
    yield from _hooks(step, names, path)
    yield from _arguments(step.get("arguments"), f"{path}.arguments")
    if inline := step.get("inline"):
        yield from _template(inline, names, f"{path}.inline")
    elif not step.get("templateRef"):
        name = str(step.get("template", ""))
        if name not in names and "{{" not in name:
            yield invalid_value(f"{path}.template", name, _nearest(names))
        elif name in names:
            yield from supplied(step.get("arguments"), names[name], f"{path}.arguments.parameters")


def _dag(dag: Any, names: Mapping[str, Any], path: str) -> Iterator[Problem]:
    tasks = dag.get("tasks") if isinstance(dag, dict) else None
    if not isinstance(tasks, list):
        yield required(f"{path}.tasks")
        return
    seen: set[str] = set()
    every = (
        problem
        for index, task in enumerate(tasks)
        for problem in _step(task, names, f"{path}.tasks[{index}]", seen, _TASK)
    )
    found = list(islice(every, MOST_NAMED))
    yield from found
    if found:
        return
    by_name = {str(task["name"]): task for task in tasks}
    try:
        needs = {name: depends_on(task, by_name)[0] for name, task in by_name.items()}
    except TemplateError as why:
        yield invalid_value(f"{path}.tasks", "…", str(why))
        return
    if circle := circle_in(needs):
        yield invalid_value(
            f"{path}.tasks", " → ".join(circle[:MOST_NAMED]), "tasks that depend on each other in a circle never begin"
        )


_CHECKS: dict[str, Callable[[Any, Mapping[str, Any], str], Iterator[Problem]]] = {
    "container": container_problems,
    "script": container_problems,
    "resource": resource_problems,
    "containerSet": container_set_problems,
    "data": data_problems,
    "http": http_problems,
    "steps": _steps,
    "dag": _dag,
}
