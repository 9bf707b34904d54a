"""`dag` templates: a task begins when what it depends on allows it. Pure."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlecloud.local.workflow.decision import hooks
from paddlecloud.local.workflow.decision.loops import expanded, is_loop
from paddlecloud.local.workflow.decision.outputs import of_template
from paddlecloud.local.workflow.decision.pod_observation import end_daemons
from paddlecloud.local.workflow.decision.references import continues_on, not_begun, resolved
from paddlecloud.local.workflow.decision.when import BadCondition
from paddlecloud.local.workflow.expressions.budget import take_work
from paddlecloud.local.workflow.expressions.evaluation import evaluate
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.limits import TooLarge
from paddlecloud.local.workflow.nodes import (
    ERROR,
    FAILED,
    OMITTED,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    Node,
    has_ended,
    has_failed,
    is_over,
)
from paddlecloud.local.workflow.scope import Scope
from paddlecloud.local.workflow.templates import Template, TemplateError
from paddlecloud.local.workflow.variables import UnresolvedVariable

if TYPE_CHECKING:
    from paddlecloud.local.workflow.decision.operation import Operation
    from paddlecloud.local.workflow.decision.place import Place

Task = dict[str, Any]

_WORD = re.compile(r"([a-zA-Z0-9][-a-zA-Z0-9]*?)\.([A-Z][a-zA-Z]+)|([a-zA-Z0-9][-a-zA-Z0-9]*)")
_RESULTS = ("Succeeded", "Failed", "Errored", "Skipped", "Omitted", "Daemoned", "AnySucceeded", "AllFailed")


def carry_out(operation: Operation, node: Node, template: Template, place: Place) -> Node:
    made = _Dag(operation, node, template, place).carry_out()
    if is_over(made):
        end_daemons(operation, made)
    return made


def depends_on(task: Mapping[str, Any], tasks: Mapping[str, Task]) -> tuple[list[str], str]:
    """The tasks that one names, and its condition over their results: `dependencies` are a condition as well."""
    condition = str(task.get("depends") or " && ".join(task.get("dependencies") or ()))
    named: dict[str, None] = {}

    def spelled(match: re.Match[str]) -> str:
        name, result, bare = match.groups()
        name = name or bare
        if name not in tasks:
            raise TemplateError(f"task {task['name']} depends on {name}, which is no task")
        named[name] = None
        if bare is None:
            if result not in _RESULTS:
                raise TemplateError(f"task result '{result}' for task '{name}' is invalid")
            return _result(name, result)
        results = ["Succeeded", "Skipped", "Daemoned"]
        on = tasks[name].get("continueOn") or {}
        results += [result for field, result in (("error", "Errored"), ("failed", "Failed")) if on.get(field)]
        return f"({' || '.join(_result(name, result) for result in results)})"

    condition = _WORD.sub(spelled, condition)
    return list(named), condition


def _result(name: str, result: str) -> str:
    """As a name in the language of expressions, which has no hyphens and no digit in front."""
    return f"task_{name.replace('-', '_')}.{result}"


class _Dag:
    def __init__(self, operation: Operation, node: Node, template: Template, place: Place) -> None:
        self._operation = operation
        self._nodes = operation.nodes
        self._node = node
        self._template = template
        self._place = place
        self._tasks: dict[str, Task] = {task["name"]: task for task in template["dag"].get("tasks") or ()}
        self._visited: set[str] = set()
        self._with_hooks_to_do: set[str] = set()

    def carry_out(self) -> Node:
        dag = self._template["dag"]
        try:
            self._depends = {name: depends_on(task, self._tasks) for name, task in self._tasks.items()}
        except TemplateError as why:
            return self._nodes.mark(self._node, ERROR, str(why))
        needed = {name for named, _ in self._depends.values() for name in named}
        targets = str(dag.get("target", "")).split() or sorted(set(self._tasks) - needed)
        if unknown := [name for name in targets if name not in self._tasks]:
            return self._nodes.mark(self._node, ERROR, f"target {unknown[0]} is no task")
        for name in targets:
            self._visit(name)
        phase = RUNNING if self._with_hooks_to_do else self._phase(targets)
        if phase == RUNNING:
            return self._node
        ends = [end for name in targets if (task := self._found(name)) for end in self._nodes.outbound(task)]
        if ends:
            self._node["outboundNodes"] = ends
        if phase == SUCCEEDED and (outputs := of_template(self._template, self._scope(list(self._tasks)))):
            self._node["outputs"] = outputs
        return self._nodes.mark(self._node, phase)

    # The phase of the whole

    def _phase(self, targets: list[str]) -> str:
        """The phase of the branch of each target. A failed task fails the branch, though what follows it is omitted."""
        if self._operation.stop_in(self._place):
            return FAILED if self._all_over() else RUNNING
        phases: dict[str, str] = {}
        todo = deque((child, SUCCEEDED) for child in self._nodes.children(self._node))
        done: set[tuple[str, str]] = set()
        wanted = {self._name(name): name for name in targets}
        while todo:
            node, branch = todo.popleft()
            if (node["id"], branch) in done:
                continue
            done.add((node["id"], branch))
            if not is_over(node):
                return RUNNING
            if has_ended(node):
                branch = node["phase"]
            if (target := wanted.get(node["name"])) and phases.get(target) not in (FAILED, ERROR):
                phases[target] = branch
            following = self._nodes.children(node)[-1:] if node["type"] == "Retry" else self._nodes.children(node)
            todo += [(child, branch) for child in following]
        fails_fast = self._template["dag"].get("failFast", True)
        result = SUCCEEDED
        for name in targets:
            branch = phases.get(name, "")
            if not branch:
                result = RUNNING
                if not fails_fast:
                    break
            elif branch in (FAILED, ERROR) and not continues_on(self._tasks[name], branch):
                result = branch
                if fails_fast:
                    break
        return result

    def _all_over(self) -> bool:
        return all(is_over(node) for node in self._nodes if node.get("boundaryID") == self._node["id"])

    # One task

    def _visit(self, name: str) -> None:
        """Begin a task if what it depends on allows it; that is visited first. Without recursion: chains are long."""
        order: list[str] = []
        entered: set[str] = set()
        todo = [name]
        while todo:
            current = todo[-1]
            if current not in self._visited and current not in entered:
                entered.add(current)
                ahead = self._depends[current][0]
                todo += [each for each in reversed(ahead) if each not in self._visited and each not in entered]
                continue
            todo.pop()
            if current not in self._visited:
                self._visited.add(current)
                order.append(current)
        for each in order:
            self._task(each)

    def _task(self, name: str) -> None:
        task, full = self._tasks[name], self._name(name)
        found = self._nodes.find(full)
        if found is None or not (is_over(found) or self._operation.is_under_way(found)):
            self._proceed(name, task, full, found)
        elif is_over(found):
            self._operation.note_end(found, task, self._place)
        for node in self._members_of(task, full):
            self._carry_out_hooks(name, node)

    def _members_of(self, task: Task, full: str) -> list[Node]:
        """What has the hooks of a task: its node and, of a loop, those of the items. As in Argo none before it runs."""
        found = self._nodes.find(full)
        if found is None or found["phase"] == PENDING or not hooks.has_hooks(task):
            return []
        return [found, *(self._nodes.children(found) if found["type"] == "TaskGroup" else ())]

    def _carry_out_hooks(self, name: str, node: Node) -> None:
        task = self._tasks[name]
        if node["boundaryID"] != self._node["id"]:
            return
        holder = task if node["name"] == self._name(name) else hooks.only_exit(task)
        try:
            scope = self._scope(self._ancestors(name))
            if not hooks.are_done(self._operation, node, holder, scope, self._place, f"tasks.{name}"):
                self._with_hooks_to_do.add(name)
        except hooks.ExitHookError:
            return  # its own node says so, and as in Argo the task is what it was
        except (TemplateError, UnresolvedVariable) as why:
            self._nodes.mark(node, ERROR, str(why))

    def _proceed(self, name: str, task: Task, full: str, found: Node | None) -> None:
        if found is None and self._operation.has_begun_enough():
            return
        named, condition = self._depends[name]
        if condition and found is None:
            before = [self._found(each) for each in named]
            if not all(each is not None and is_over(each) for each in before) or self._with_hooks_to_do & {*named}:
                return
            try:
                begins = evaluate(condition, self._results(named))
            except ExpressionError as why:
                self._skip(full, ERROR, f"unable to evaluate expression '{condition}': {why}", named)
                return
            if begins is not True:
                self._skip(full, OMITTED, "omitted: depends condition not met", named)
                return
        self._begin(task, full, named)

    def _begin(self, task: Task, full: str, named: list[str]) -> None:
        scope = self._scope(self._ancestors(task["name"]))
        try:
            plain = {key: value for key, value in task.items() if key not in ("depends", "dependencies")}
            members = expanded(resolved(plain, scope), scope.variables, self._operation.allowance)
        except TooLarge:
            raise
        except (TemplateError, UnresolvedVariable, BadCondition) as why:
            self._skip(full, ERROR, str(why), named)
            return
        if not is_loop(task):
            self._member(members[0], full, lambda name: self._connect(name, named))
            return
        if not members:
            self._skip(full, SKIPPED, "Skipped, empty params", named)
            return
        group = self._nodes.find(full)
        if group is None:
            self._connect(full, named)
            group = self._nodes.add(full, "TaskGroup", RUNNING, boundary=self._node["id"])
            group |= {"templateName": task.get("template"), "templateScope": self._place.library.scope}
        whole = group
        names = [self._name(member["name"]) for member in members]
        for number, (member, name) in enumerate(zip(members, names, strict=True)):
            self._member(member, name, lambda name: self._nodes.connect(whole, name))
            if name in self._operation.errors:
                names = names[: number + 1]  # what follows it does not begin
                break
        made = [self._nodes.find(name) for name in names]
        if all(each is not None and is_over(each) for each in made):
            failed = [each["phase"] for each in made if each is not None and has_failed(each)]
            self._nodes.mark(group, failed[-1] if failed else SUCCEEDED)

    def _member(self, task: Task, full: str, connect: Any) -> None:
        found = self._nodes.find(full)
        if found is None and not_begun(self._nodes, full, task, self._node["id"]) is not None:
            connect(full)
            return
        made = self._operation.execute(full, task, task.get("arguments") or {}, self._place)
        if made is not None and found is None:
            connect(full)
        if made is not None and (error := self._operation.errors.get(full)):
            self._nodes.mark(made, ERROR, f"task '{full}' errored: {error}")

    def _skip(self, full: str, phase: str, message: str, named: list[str]) -> None:
        found = self._nodes.find(full)
        if found is not None:
            self._nodes.mark(found, phase, message)
            return
        self._nodes.add(full, "Skipped", phase, boundary=self._node["id"], message=message)
        self._connect(full, named)

    def _connect(self, full: str, named: list[str]) -> None:
        """A task is a child of what ended the tasks that it depends on, or of the template's node."""
        before = [found for each in named if (found := self._found(each)) is not None]
        ends = [end for each in before for end in self._nodes.outbound(each)]
        for parent in [self._nodes.by_id[end] for end in ends] or [self._node]:
            self._nodes.connect(parent, full)

    # What a task may ask about others

    def _name(self, task: str) -> str:
        return f"{self._node['name']}.{task}"

    def _found(self, task: str) -> Node | None:
        return self._nodes.find(self._name(task))

    def _results(self, named: list[str]) -> dict[str, Any]:
        made = {}
        for name in named:
            node = self._found(name)
            assert node is not None
            phase = node["phase"]
            inner = [each["phase"] for each in self._nodes.children(node)] if node["type"] == "TaskGroup" else []
            made[_result(name, "")[:-1]] = {
                "Succeeded": phase == SUCCEEDED,
                "Failed": phase == FAILED,
                "Errored": phase == ERROR,
                "Skipped": phase == SKIPPED,
                "Omitted": phase == OMITTED,
                "Daemoned": bool(node.get("daemoned")) and phase != PENDING,
                "AnySucceeded": SUCCEEDED in inner,
                "AllFailed": bool(inner) and all(each == FAILED for each in inner),
            }
        return made

    def _ancestors(self, task: str) -> list[str]:
        found: dict[str, None] = {}
        todo = list(self._depends[task][0])
        while todo:
            name = todo.pop()
            if name not in found and name != task:
                found[name] = None
                todo += self._depends[name][0]
        take_work(len(found) * 4)
        return list(found)

    def _scope(self, names: list[str]) -> Scope:
        scope = Scope(self._template, self._operation.variables, self._operation.artifacts)
        for name in names:
            node, prefix = self._found(name), f"tasks.{name}"
            if node is None:
                continue
            if node["type"] == "TaskGroup":
                scope.add_loop(prefix, self._nodes.children(node))
            scope.add_node(prefix, node, self._place.library.declared(self._tasks[name]))
        return scope
