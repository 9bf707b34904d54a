"""Lifecycle hooks: templates that run when a condition about a step, a task or the workflow holds, or at its end. Pure.

As Argo's `hooks.go` and `exit_handler.go`. A hook is a node `NAME.hooks.HOOK`, an exit hook `NAME.onExit`; both are
children of what they belong to, with the flag `hooked`. What follows waits for them, whatever their result is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlecloud.local.workflow.decision.references import resolved
from paddlecloud.local.workflow.expressions.evaluation import evaluate
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.nodes import Node, has_ended, is_over
from paddlecloud.local.workflow.scope import Scope
from paddlecloud.local.workflow.templates import Holder, TemplateError
from paddlecloud.local.workflow.variables import expression_variables

if TYPE_CHECKING:
    from paddlecloud.local.workflow.decision.operation import Operation
    from paddlecloud.local.workflow.decision.place import Place

EXIT = "exit"
HOOKED = {"hooked": True}


class ExitHookError(TemplateError):
    """The exit hook of a step or task could not be carried out."""


def exit_hook(holder: Holder, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """`onExit`, or the hook of this name; without arguments of its own it gets the workflow's."""
    if holder.get("onExit"):
        return {"template": holder["onExit"], "arguments": arguments}
    hook = (holder.get("hooks") or {}).get(EXIT)
    return None if hook is None else {**hook, "arguments": hook.get("arguments") or arguments}


def only_exit(holder: Holder) -> Holder:
    """Of the items of a loop in a dag: its other hooks are those of the whole loop."""
    hook = (holder.get("hooks") or {}).get(EXIT)
    return {**holder, "hooks": {EXIT: hook} if hook is not None else {}}


def has_hooks(holder: Holder) -> bool:
    return bool(holder.get("hooks") or holder.get("onExit"))


def are_done(operation: Operation, node: Node, holder: Holder, scope: Scope, place: Place, prefix: str) -> bool:
    """Begin the hooks of a step or task that are due. Raises `TemplateError` for one that cannot be evaluated."""
    if not has_hooks(holder):
        return True
    scope.variables[f"{prefix}.status"] = node["phase"]
    begun = [
        _run(operation, node, f"{node['name']}.hooks.{name}", hook, scope, place, prefix)
        for name, hook in sorted((holder.get("hooks") or {}).items())
        if name != EXIT and _is_due(operation, node, name, hook, scope.variables)
    ]
    if failed := [each["name"] for each in begun if each is not None and each["name"] in operation.errors]:
        raise TemplateError(operation.errors[failed[0]])
    final, full = exit_hook(holder, operation.spec.get("arguments") or {}), f"{node['name']}.onExit"
    if final is not None and has_ended(node) and (operation.nodes.find(full) or _exits(operation, final, scope)):
        late = dataclasses.replace(place, on_exit=True)
        begun.append(_run(operation, node, full, final, scope, late, prefix))
        if why := operation.errors.get(full):
            raise ExitHookError(why)
    return all(each is not None and is_over(each) for each in begun)


def workflow_hooks_are_done(operation: Operation, node: Node, place: Place) -> bool:
    """Those of the workflow itself, but for its exit hook."""
    begun = []
    for name, hook in sorted((operation.spec.get("hooks") or {}).items()):
        if name == EXIT or not _is_due(operation, node, name, hook, operation.variables):
            continue
        full = f"{operation.name}.hooks.{name}"
        made = operation.execute(full, hook, hook.get("arguments") or {}, place, nodeFlag=dict(HOOKED))
        if made is not None:
            operation.nodes.connect(node, full)
        begun.append(made)
    return all(each is not None and is_over(each) for each in begun)


def _exits(operation: Operation, hook: Mapping[str, Any], scope: Scope) -> bool:
    if operation.spec.get("shutdown") == "Terminate":
        return False
    return not hook.get("expression") or _holds(hook["expression"], scope.variables)


def _is_due(operation: Operation, node: Node, name: str, hook: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """One that began goes on, whatever its condition says by now."""
    if operation.nodes.find(f"{node['name']}.hooks.{name}") is not None:
        return True
    if not hook.get("expression"):
        raise TemplateError(f"Expression required for hook {node['name']}.hooks.{name}")
    return _holds(hook["expression"], known)


def _holds(expression: Any, variables: Mapping[str, Any]) -> bool:
    try:
        value = evaluate(str(expression), expression_variables(variables))
    except ExpressionError as why:
        raise TemplateError(f"hook expression {str(expression)[:200]!r}: {why}") from None
    if not isinstance(value, bool):
        raise TemplateError(f"hook expression {str(expression)[:200]!r} is not true or false")
    return value


def _run(
    operation: Operation, node: Node, name: str, hook: Mapping[str, Any], scope: Scope, place: Place, prefix: str
) -> Node | None:
    found = operation.nodes.find(name)
    if found is not None and is_over(found):
        return found
    last = operation.nodes.children(node)[-1:] if node["type"] == "Retry" else []
    outputs = (last[0] if last else node).get("outputs") or {}
    scope.add_node(prefix, {**node, "outputs": outputs})
    for each in outputs.get("parameters") or ():  # of a step that failed some have no value
        scope.variables.setdefault(f"{prefix}.outputs.parameters.{each['name']}", "")
    step = {key: hook[key] for key in ("template", "templateRef", "arguments") if hook.get(key)}
    ready = resolved(step, scope, strict=False)
    made = operation.execute(name, ready, ready.get("arguments") or {}, place, nodeFlag=dict(HOOKED))
    if made is not None:
        operation.nodes.connect(node, name)
    return made
