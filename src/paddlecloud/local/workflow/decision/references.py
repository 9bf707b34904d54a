"""Steps and tasks with what earlier ones gave. Pure."""

from __future__ import annotations

from typing import Any

from paddlecloud.local.workflow.decision.loops import is_loop
from paddlecloud.local.workflow.decision.when import BadCondition, holds
from paddlecloud.local.workflow.nodes import ERROR, FAILED, SKIPPED, Node, Nodes
from paddlecloud.local.workflow.scope import Scope
from paddlecloud.local.workflow.templates import TemplateError
from paddlecloud.local.workflow.variables import substitute, substitute_text, unresolved

Step = dict[str, Any]
"""A step of `steps`, or a task of a `dag`."""


def resolved(step: Step, scope: Scope, *, strict: bool = True) -> Step:
    """One whose `when` is false is left as it is: it is not carried out. Hooks are resolved when they are due, and not
    `strict`: what they name of their own step is missing where that failed.
    """
    hooks = {key: value for key, value in step.items() if key in ("hooks", "onExit")}
    plain = {key: value for key, value in step.items() if key not in hooks}
    if plain.get("when"):
        plain["when"] = substitute_text(str(plain["when"]), scope.variables, lenient=True)
        try:
            if not holds(plain["when"]):
                return {**plain, **hooks}
        except BadCondition:
            if not is_loop(step):
                raise
    made = _with_artifacts(substitute(_without_absent(plain, scope), scope.variables, lenient=True), scope)
    if strict and (missing := unresolved(made, "steps.", "tasks.")):
        raise TemplateError(f"failed to resolve {{{{{missing}}}}}")
    return {**made, **hooks}


def _without_absent(step: Step, scope: Scope) -> Step:
    """Without parameters that only name an output which a skipped step did not make: the input's own default counts. As
    Argo's `markAbsentOptionalArgs`."""
    arguments = step.get("arguments") or {}
    given = arguments.get("parameters")
    if not given:
        return step
    kept = [each for each in given if not _is_absent(each.get("value"), scope)]
    return {**step, "arguments": {**arguments, "parameters": kept}}


def _is_absent(value: Any, scope: Scope) -> bool:
    if not isinstance(value, str) or not value.startswith("{{") or not value.endswith("}}"):
        return False
    name = value[2:-2].strip()
    return name in scope.variables and scope.variables[name] is None


def not_begun(nodes: Nodes, name: str, step: Step, boundary: str) -> Node | None:
    """The new node of a step whose `when` is false, or is no condition; None for one that is to be carried out."""
    try:
        if holds(step.get("when", "")):
            return None
    except BadCondition as why:
        return nodes.add(name, "Skipped", ERROR, boundary=boundary, message=str(why))
    reason = f"when '{step['when']}' evaluated false"
    return nodes.add(name, "Skipped", SKIPPED, boundary=boundary, message=reason)


def continues_on(step: Step, phase: str) -> bool:
    on: dict[str, Any] = step.get("continueOn") or {}
    return bool(on.get("failed") and phase == FAILED) or bool(on.get("error") and phase == ERROR)


def _with_artifacts(step: Step, scope: Scope) -> Step:
    """With the place of each artifact that it takes `from` another; one that may be missing is left out."""
    arguments = step.get("arguments") or {}
    given = arguments.get("artifacts")
    if not given:
        return step
    found = []
    for artifact in given:
        if not artifact.get("from") and not artifact.get("fromExpression"):
            found.append(artifact)
            continue
        source = scope.artifact_of(artifact)
        if source is not None:
            found.append({**source, **{key: artifact[key] for key in ("name", "subPath") if artifact.get(key)}})
        elif not artifact.get("optional"):
            wanted = artifact.get("from") or artifact["fromExpression"]
            raise TemplateError(f"unable to resolve references: {wanted} is no artifact")
    return {**step, "arguments": {**arguments, "artifacts": found}}
