"""What is refused in templates, and in the steps, tasks and hooks that name them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from paddlecloud.kube.cycles import cycle_in
from paddlecloud.local.workflow.decision.dag import depends_on
from paddlecloud.local.workflow.decision.hooks import EXIT
from paddlecloud.local.workflow.decision.metrics import metric_problems
from paddlecloud.local.workflow.templates import KINDS, POD_KINDS, TemplateError
from paddlecloud.local.workflow.validation.artifacts import archive_problems, artifact_problems
from paddlecloud.local.workflow.validation.containers import unknown_fields
from paddlecloud.local.workflow.validation.fields import (
    MOST_NAMED,
    not_whole_numbers,
    shortened,
    unserved_fields,
    wrong_types,
)
from paddlecloud.local.workflow.validation.locks import lock_problems
from paddlecloud.local.workflow.validation.parameters import parameter_problems
from paddlecloud.local.workflow.validation.pods import (
    container_problems,
    container_set_problems,
    data_problems,
    http_problems,
    patch_problems,
    resource_problems,
)
from paddlecloud.local.workflow.validation.problems import Problem, duplicate, invalid_value, required
from paddlecloud.local.workflow.validation.referred import supplied

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
_TEMPLATE_TYPES: dict[str, type] = {
    "inputs": dict, "outputs": dict, "metadata": dict, "retryStrategy": dict, "volumes": list, "tolerations": list,
    "sidecars": list, "initContainers": list,
}  # fmt: skip


def template_problems(template: Any, names: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if not isinstance(template, dict):
        yield invalid_value(path, "…", "must be a template")
        return
    yield from unserved_fields(template, _TEMPLATE, path)
    yield from unknown_fields(template, path)
    yield from wrong_types(template, _TEMPLATE_TYPES, path)
    yield from not_whole_numbers(template, ("parallelism",), path)
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
            yield from unserved_fields(value, served, f"{path}.{side}")
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


def argument_problems(arguments: Any, path: str) -> Iterator[Problem]:
    if arguments is None:
        return
    if not isinstance(arguments, dict):
        yield invalid_value(path, arguments, "must be a map with parameters")
        return
    yield from unserved_fields(arguments, _INPUTS, path)
    yield from parameter_problems(arguments.get("parameters"), f"{path}.parameters")
    yield from artifact_problems(arguments.get("artifacts"), f"{path}.artifacts", "argument")


def hook_problems(holder: Mapping[str, Any], names: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if (handler := holder.get("onExit")) and str(handler) not in names:
        yield invalid_value(f"{path}.onExit", handler, known_templates(names))
    hooks = holder.get("hooks") or {}
    if not isinstance(hooks, dict) or not all(isinstance(hook, dict) for hook in hooks.values()):
        yield invalid_value(f"{path}.hooks", "…", "must be a map of hooks")
        return
    for name, hook in hooks.items():
        place = f"{path}.hooks.{str(name)[:60]}"
        if name != EXIT and not hook.get("expression"):
            yield required(f"{place}.expression", "when the hook is to run")
        if not hook.get("templateRef") and str(hook.get("template", "")) not in names:
            yield invalid_value(f"{place}.template", hook.get("template", ""), known_templates(names))
        yield from argument_problems(hook.get("arguments"), f"{place}.arguments")


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
    yield from (
        invalid_value(f"{path}.{name}", shortened(step[name]), "only tasks of a dag have it") for name in others
    )
    yield from unserved_fields({name: value for name, value in step.items() if name not in _TASK}, served, path)
    yield from hook_problems(step, names, path)
    yield from argument_problems(step.get("arguments"), f"{path}.arguments")
    if inline := step.get("inline"):
        yield from template_problems(inline, names, f"{path}.inline")
    elif not step.get("templateRef"):
        name = str(step.get("template", ""))
        if name not in names and "{{" not in name:
            yield invalid_value(f"{path}.template", name, known_templates(names))
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
    if cycle := cycle_in(needs):
        yield invalid_value(
            f"{path}.tasks", " → ".join(cycle[:MOST_NAMED]), "tasks that depend on each other in a circle never begin"
        )


def known_templates(names: Mapping[str, Any]) -> str:
    first = ", ".join(each[:60] for each in sorted(names)[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"there is no such template; there are: {first or 'none'}{more}"


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
