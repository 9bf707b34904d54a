"""`when` and `stopStrategy` of a CronWorkflow: conditions over its own counts and labels. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.decision.when import BadCondition, holds
from paddlecloud.local.workflow.expressions.evaluation import evaluate
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.expressions.values import to_json
from paddlecloud.local.workflow.variables import UnresolvedVariable, expression_variables, substitute_text

PREFIX = "cronworkflow"


class BadExpression(ValueError):
    """A condition that cannot be evaluated; the message names it."""


def must_stop(cron: Object, counts: Mapping[str, Any]) -> bool:
    """Whether `stopStrategy.expression` holds: nothing more is run."""
    strategy = cron["spec"].get("stopStrategy") or {}
    expression = strategy.get("expression") or strategy.get("condition")
    if not expression:
        return False
    try:
        value = evaluate(str(expression), expression_variables(_variables(cron, counts)))
    except ExpressionError as why:
        raise BadExpression(f"failed to evaluate stop expression: {why}") from None
    if not isinstance(value, bool):
        raise BadExpression(f"failed to evaluate stop expression: {expression!r} is not true or false")
    return value


def may_run(cron: Object, counts: Mapping[str, Any]) -> bool:
    text = str(cron["spec"].get("when") or "")
    if not text:
        return True
    try:
        return holds(substitute_text(text, _variables(cron, counts), lenient=False))
    except (UnresolvedVariable, BadCondition) as why:
        raise BadExpression(f"when: {why}") from None


def _variables(cron: Object, counts: Mapping[str, Any]) -> dict[str, Any]:
    """Argo's `expressionEnv`."""
    meta = cron["metadata"]
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    known: dict[str, Any] = {
        f"{PREFIX}.name": meta["name"],
        f"{PREFIX}.namespace": meta["namespace"],
        f"{PREFIX}.labels.json": to_json(labels),
        f"{PREFIX}.annotations.json": to_json(annotations),
        f"{PREFIX}.failed": counts["failed"],
        f"{PREFIX}.succeeded": counts["succeeded"],
        f"{PREFIX}.lastScheduledTime": counts["lastScheduledTime"],
    }
    known |= {f"{PREFIX}.labels.{key}": value for key, value in labels.items()}
    return known | {f"{PREFIX}.annotations.{key}": value for key, value in annotations.items()}
