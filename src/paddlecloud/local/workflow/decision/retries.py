"""`retryStrategy` of a template: whether, when and as what the next attempt is made. Pure.

As Argo's `processNodeRetries`: the node of type Retry has its attempts as children, `name(0)`, `name(1)`, …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.local.workflow.durations import LONGEST, seconds
from paddlecloud.local.workflow.expressions.evaluation import evaluate
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.nodes import ERROR, FAILED, RUNNING, SUCCEEDED, Node, has_failed, is_over
from paddlecloud.local.workflow.templates import TemplateError
from paddlecloud.local.workflow.variables import expression_variables


@dataclass(frozen=True)
class RetryDecision:
    """Either the retries are over (`phase`), or the next one is waited for (`wait`), or `attempt` is carried out."""

    attempt: str = ""
    phase: str = ""
    message: str = ""
    wait: float | None = None


def decide_retry(
    strategy: Mapping[str, Any], node: Node, attempts: Sequence[Node], now: float, stopped_because: str = ""
) -> RetryDecision:
    if not attempts:
        return RetryDecision(attempt=f"{node['name']}(0)")
    last = attempts[-1]
    if not is_over(last):
        return RetryDecision(attempt=last["name"])
    if last.get("daemoned"):
        return RetryDecision(phase=RUNNING)
    if not has_failed(last):
        return RetryDecision(phase=SUCCEEDED)
    if stopped_because:
        return RetryDecision(phase=last["phase"], message=stopped_because)
    if backoff := strategy.get("backoff"):
        by_backoff = _backed_off(backoff, strategy, attempts, now)
        if by_backoff is not None:
            return by_backoff
    if not _is_retried(strategy, last):
        return RetryDecision(phase=last["phase"], message=last.get("message", ""))
    limit = _whole(strategy.get("limit"))
    if limit is not None and len(attempts) > limit:
        return RetryDecision(phase=last["phase"], message="No more retries left")
    if expression := strategy.get("expression"):
        try:
            again = evaluate(str(expression), expression_variables(variables(attempts, f"({len(attempts)})")))
        except ExpressionError as why:
            raise TemplateError(f"retryStrategy.expression: {why}") from None
        if again is not True:
            return RetryDecision(phase=last["phase"], message="retryStrategy.expression evaluated to false")
    return RetryDecision(attempt=f"{node['name']}({len(attempts)})")


def _whole(value: Any) -> int | None:
    if value is None or value == "":
        return None
    try:
        return int(str(value))
    except ValueError:
        raise TemplateError(f"retryStrategy.limit must be a whole number, not {value!r}") from None


def retries_errors(strategy: Mapping[str, Any]) -> bool:
    """Whether an attempt that could not begin is followed by another. As in Argo, `OnTransientError` counts here."""
    return _policy(strategy) in ("Always", "OnError", "OnTransientError")


def _policy(strategy: Mapping[str, Any]) -> str:
    """`OnFailure` is the default, `Always` where there is an expression."""
    return str(strategy.get("retryPolicy") or ("Always" if strategy.get("expression") else "OnFailure"))


def _is_retried(strategy: Mapping[str, Any], last: Node) -> bool:
    policy = _policy(strategy)
    phases = {"Always": (FAILED, ERROR), "OnFailure": (FAILED,), "OnError": (ERROR,), "OnTransientError": ()}
    if policy not in phases:
        raise TemplateError(f"{policy} is not a valid RetryPolicy")
    return last["phase"] in phases[policy]


def _backed_off(
    backoff: Mapping[str, Any], strategy: Mapping[str, Any], attempts: Sequence[Node], now: float
) -> RetryDecision | None:
    last = attempts[-1]
    latest = None
    if backoff.get("maxDuration"):
        latest = parse_rfc3339(attempts[0]["startedAt"]) + seconds(backoff["maxDuration"])
        if now > latest:
            return RetryDecision(phase=last["phase"], message="Max duration limit exceeded")
    if not backoff.get("duration"):
        raise TemplateError("no base duration specified for retryStrategy")
    wait = seconds(backoff["duration"])
    factor = _whole(backoff.get("factor"))
    if factor:
        wait = min(wait * float(factor) ** min(len(attempts) - 1, 60), LONGEST)
    if backoff.get("cap"):
        wait = min(wait, seconds(backoff["cap"]))
    until = parse_rfc3339(last["finishedAt"]) + wait
    if latest is not None and until > latest:
        return RetryDecision(phase=last["phase"], message="Backoff would exceed max duration limit")
    limit = _whole(strategy.get("limit"))
    if now < until and limit is not None and len(attempts) <= limit:
        return RetryDecision(wait=until - now, message=f"Backoff for {wait:g} seconds")
    return None


def variables(attempts: Sequence[Node], name: str) -> dict[str, str]:
    """What the template of an attempt may name: the number of this one, and how the last one ended."""
    number = name.rpartition("(")[2].rstrip(")")
    before = attempts[: int(number)]
    if not before:
        return {"retries": number, **_last("0", "", "0", "")}
    last = before[-1]
    lasted = parse_rfc3339(last["finishedAt"]) - parse_rfc3339(last["startedAt"]) if last.get("finishedAt") else 0.0
    code = (last.get("outputs") or {}).get("exitCode") or "0"
    return {"retries": number, **_last(code, last["phase"], f"{lasted:g}", last.get("message", ""))}


def _last(code: str, status: str, duration: str, message: str) -> dict[str, str]:
    return {
        "lastRetry.exitCode": code,
        "lastRetry.status": status,
        "lastRetry.duration": duration,
        "lastRetry.message": message,
    }
