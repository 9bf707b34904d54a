"""`steps` templates: groups one after the other, the steps of a group together. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlecloud.local.workflow.decision import hooks
from paddlecloud.local.workflow.decision.loops import expanded
from paddlecloud.local.workflow.decision.outputs import of_template
from paddlecloud.local.workflow.decision.pod_observation import end_daemons
from paddlecloud.local.workflow.decision.references import Step, continues_on, not_begun, resolved
from paddlecloud.local.workflow.decision.when import BadCondition
from paddlecloud.local.workflow.limits import TooLarge
from paddlecloud.local.workflow.nodes import ERROR, FAILED, RUNNING, SKIPPED, SUCCEEDED, Node, has_failed, is_over
from paddlecloud.local.workflow.scope import Scope
from paddlecloud.local.workflow.templates import Template, TemplateError
from paddlecloud.local.workflow.variables import UnresolvedVariable

if TYPE_CHECKING:
    from paddlecloud.local.workflow.decision.operation import Operation
    from paddlecloud.local.workflow.decision.place import Place


def carry_out(operation: Operation, node: Node, template: Template, place: Place) -> Node:
    made = _carry_out(operation, node, template, place)
    if is_over(made):
        end_daemons(operation, made)
    return made


def _carry_out(operation: Operation, node: Node, template: Template, place: Place) -> Node:
    nodes = operation.nodes
    scope = Scope(template, operation.variables, operation.artifacts)
    before: Node | None = None
    for number, steps in enumerate(template["steps"]):
        name = f"{node['name']}[{number}]"
        group = nodes.find(name) or nodes.add(name, "StepGroup", RUNNING, boundary=node["id"])
        _connect(operation, node, before, group)
        try:
            _carry_out_group(operation, group, steps, scope, place)
        except hooks.ExitHookError as why:
            nodes.mark(group, ERROR, str(why))
            return nodes.mark(node, ERROR, str(why))
        if not is_over(group):
            return node
        if has_failed(group):
            _set_outbound(operation, node, group)
            return nodes.mark(node, FAILED, group.get("message", ""))
        for step in steps:
            _add_to_scope(operation, scope, group, step, place)
        before = group
    if before is not None:
        _set_outbound(operation, node, before)
    if outputs := of_template(template, scope):
        node["outputs"] = outputs
    return nodes.mark(node, SUCCEEDED)


def _connect(operation: Operation, node: Node, before: Node | None, group: Node) -> None:
    """The first group is a child of the template's node, the others of what ended the group before."""
    if before is None:
        operation.nodes.connect(node, group["name"])
        return
    ends = [end for child in operation.nodes.children(before) for end in operation.nodes.outbound(child)]
    for parent in [operation.nodes.by_id[end] for end in ends] or [before]:
        operation.nodes.connect(parent, group["name"])


def _set_outbound(operation: Operation, node: Node, last: Node) -> None:
    ends = [end for child in operation.nodes.children(last) for end in operation.nodes.outbound(child)]
    if ends:
        node["outboundNodes"] = ends


def _add_to_scope(operation: Operation, scope: Scope, group: Node, step: Step, place: Place) -> None:
    nodes, prefix = operation.nodes, f"steps.{step['name']}"
    one = nodes.find(f"{group['name']}.{step['name']}")
    if one is not None:
        scope.add_node(prefix, one, place.library.declared(step))
        return
    stem = f"{group['name']}.{step['name']}("
    scope.add_loop(prefix, [each for each in nodes.children(group) if each["name"].startswith(stem)])
    scope.variables[f"{prefix}.status"] = group["phase"]


def _carry_out_group(operation: Operation, group: Node, steps: list[Step], scope: Scope, place: Place) -> None:
    nodes = operation.nodes
    if is_over(group):
        return
    try:
        ready = [resolved(step, scope) for step in steps]
        members = [each for step in ready for each in _members(operation, group, step, scope)]
    except TooLarge:
        raise
    except (TemplateError, UnresolvedVariable, BadCondition) as why:
        nodes.mark(group, ERROR, str(why))
        return
    by_name: dict[str, Step] = {}
    for step in members:
        name = f"{group['name']}.{step['name']}"
        by_name[name] = step
        skipped = not_begun(nodes, name, step, place.boundary) if nodes.find(name) is None else None
        made = skipped or _execute(operation, name, step, place)
        if made is not None:
            nodes.connect(group, name)
        if skipped is not None and has_failed(skipped):
            nodes.mark(group, ERROR, skipped["message"])
            return
        if name in operation.errors:  # what follows it does not begin
            message = f"step group deemed errored due to child {name} error: {operation.errors[name]}"
            nodes.mark(group, ERROR, message)
            return
    children = nodes.children(group)
    try:
        settled = [_hooks_are_done(operation, child, by_name, scope, place) for child in children]
    except hooks.ExitHookError:
        raise
    except TemplateError as why:
        nodes.mark(group, ERROR, str(why))
        return
    if len(children) < len(by_name) or not all(settled) or not all(is_over(child) for child in children):
        return
    for child in children:
        if has_failed(child) and not continues_on(by_name.get(child["name"], {}), child["phase"]):
            nodes.mark(group, FAILED, f"child '{child['id']}' failed")
            return
    nodes.mark(group, SUCCEEDED)


def _execute(operation: Operation, name: str, step: Step, place: Place) -> Node | None:
    found = operation.nodes.find(name)
    if found is not None and is_over(found):
        operation.note_end(found, step, place)
        return found
    return operation.execute(name, step, step.get("arguments") or {}, place)


def _hooks_are_done(operation: Operation, child: Node, by_name: dict[str, Step], scope: Scope, place: Place) -> bool:
    step = by_name.get(child["name"], {})
    return hooks.are_done(operation, child, step, scope, place, f"steps.{step.get('name', '')}")


def _members(operation: Operation, group: Node, step: Step, scope: Scope) -> list[Step]:
    members = expanded(step, scope.variables, operation.allowance)
    name = f"{group['name']}.{step['name']}"
    if not members and operation.nodes.find(name) is None:
        operation.nodes.add(name, "Skipped", SKIPPED, boundary=group["boundaryID"], message="Skipped, empty params")
        operation.nodes.connect(group, name)
    return members
