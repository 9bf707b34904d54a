"""What a step or task may name: the inputs of its template, and what earlier steps or tasks were and gave. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from paddlecloud.local.workflow.expressions.evaluation import evaluate
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.expressions.values import to_json
from paddlecloud.local.workflow.nodes import OMITTED, SKIPPED, SUCCEEDED, Node
from paddlecloud.local.workflow.templates import Template, TemplateError, text_of
from paddlecloud.local.workflow.variables import expression_variables

Artifact = dict[str, Any]
_INDEX = re.compile(r"\((\d+):")


class Scope:
    """`variables` are texts by their whole name, None for outputs that a skipped step did not make."""

    def __init__(
        self, template: Template, workflow_variables: Mapping[str, Any], artifacts: Mapping[str, Artifact]
    ) -> None:
        """`artifacts` are those of the whole workflow, by their whole name."""
        self.variables: dict[str, Any] = dict(workflow_variables)
        self.artifacts: dict[str, Artifact] = dict(artifacts)
        inputs = template.get("inputs") or {}
        for parameter in inputs.get("parameters") or ():
            self.variables[f"inputs.parameters.{parameter['name']}"] = text_of(parameter["value"])
        for artifact in inputs.get("artifacts") or ():
            self.artifacts[f"inputs.artifacts.{artifact['name']}"] = artifact

    def add_node(self, prefix: str, node: Node, declared: Template | None = None) -> None:
        """A step or task that is over; `declared` is its template, for the outputs of one that was skipped."""
        fields = {"id": "id", "startedAt": "startedAt", "finishedAt": "finishedAt", "podIP": "ip", "phase": "status"}
        for field, name in fields.items():
            if node.get(field):
                self.variables[f"{prefix}.{name}"] = node[field]
        if host := node.get("hostNodeName"):
            self.variables[f"{prefix}.hostNodeName"] = host
        outputs = node.get("outputs")
        if outputs:
            self._add_outputs(prefix, outputs)
        elif declared is not None and node["phase"] in (SKIPPED, OMITTED):
            self._add_missing(prefix, declared)

    def _add_outputs(self, prefix: str, outputs: Mapping[str, Any]) -> None:
        if outputs.get("result") is not None:
            self.variables[f"{prefix}.outputs.result"] = outputs["result"]
        if outputs.get("exitCode") is not None:
            self.variables[f"{prefix}.exitCode"] = outputs["exitCode"]
        for parameter in outputs.get("parameters") or ():
            if parameter.get("value") is not None:
                self.variables[f"{prefix}.outputs.parameters.{parameter['name']}"] = text_of(parameter["value"])
        for artifact in outputs.get("artifacts") or ():
            self.artifacts[f"{prefix}.outputs.artifacts.{artifact['name']}"] = artifact

    def _add_missing(self, prefix: str, declared: Template) -> None:
        for parameter in (declared.get("outputs") or {}).get("parameters") or ():
            usual = (parameter.get("valueFrom") or {}).get("default")
            name = f"{prefix}.outputs.parameters.{parameter['name']}"
            self.variables[name] = None if usual is None else text_of(usual)

    def add_loop(self, prefix: str, members: Iterable[Node]) -> None:
        """The outputs of all that a loop made, as JSON lists in the order of its items."""
        good = [node for node in members if node["phase"] == SUCCEEDED and node.get("outputs")]
        good.sort(key=_position)
        results = [_item(node["outputs"]["result"]) for node in good if node["outputs"].get("result") is not None]
        self.variables[f"{prefix}.outputs.result"] = to_json(results)
        made = [
            {each["name"]: text_of(each.get("value", "")) for each in node["outputs"].get("parameters") or ()}
            for node in good
        ]
        made = [each for each in made if each]
        self.variables[f"{prefix}.outputs.parameters"] = to_json(made)
        for name in {name for each in made for name in each}:
            values = [each[name] for each in made if name in each]
            self.variables[f"{prefix}.outputs.parameters.{name}"] = _list(values)

    def output(self, value_from: Mapping[str, Any]) -> str | None:
        """The value of an output of a steps or dag template; None where a skipped step would have given it."""
        if expression := value_from.get("expression"):
            try:
                value = evaluate(str(expression), expression_variables(self.variables))
            except ExpressionError as why:
                raise TemplateError(f"failed to evaluate expression {expression!r}: {why}") from None
            if value is None:
                raise TemplateError(f"failed to evaluate expression {expression!r}: its value is nil")
            return text_of(value)
        name = str(value_from.get("parameter", "")).strip().removeprefix("{{").removesuffix("}}").strip()
        if name not in self.variables:
            raise TemplateError(f"Unable to resolve: {{{{{name}}}}}")
        return None if self.variables[name] is None else text_of(self.variables[name])

    def artifact_of(self, reference: Mapping[str, Any]) -> Artifact | None:
        """What `from` or `fromExpression` of an argument or output names; None where it was not made."""
        if expression := reference.get("fromExpression"):
            try:
                found = evaluate(str(expression), expression_variables({**self.variables, **self.artifacts}))
            except ExpressionError as why:
                raise TemplateError(f"failed to evaluate expression {expression!r}: {why}") from None
            return found if isinstance(found, dict) else None
        source = str(reference.get("from", ""))
        return self.artifacts.get(source.strip().removeprefix("{{").removesuffix("}}").strip())


def _position(node: Node) -> int:
    """The last number in `wf[0].outer(1:a)[0].step(3:item)`; items have no parentheses."""
    found = _INDEX.findall(node["name"])
    return int(found[-1]) if found else 0


def _item(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _list(values: list[str]) -> str:
    """Values that are JSON maps or lists are members as such; if one is not, all are texts."""
    items = [_item(value) for value in values]
    return to_json(items if all(isinstance(each, (dict, list)) for each in items) else values)
