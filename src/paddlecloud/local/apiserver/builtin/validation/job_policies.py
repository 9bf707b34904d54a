"""What Kubernetes refuses in the policies of a Job: limits for each index, podFailurePolicy and successPolicy.

As pkg/apis/batch/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paddlecloud.kube.name_rules import qualified_name_problems
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.validation.rules import not_negative, problems
from paddlecloud.local.apiserver.schema.causes import Cause, invalid, required, too_long, too_many

MANY_COMPLETIONS = 100_000
MOST_INDEXES_AT_ONCE = MOST_FAILED_INDEXES = 100_000
MOST_WITH_MANY_COMPLETIONS = 10_000
MOST_RULES = 20
MOST_EXIT_CODES = 255
LONGEST_INDEXES = 64 * 1024
"""Characters of all lists of a successPolicy together; kube-apiserver allows as many for each of its rules."""
_INDEXED = "requires indexed completion mode"


def job_policies(path: str, spec: Object) -> list[Cause]:
    found = _indexed(path, spec) if spec.get("completionMode") == "Indexed" else _not_indexed(path, spec)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        found.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if spec.get("podFailurePolicy") is not None:
        found += _failure_policy(f"{path}.podFailurePolicy.rules", spec)
    return found


# --- indexes --------------------------------------------------------------------------------------------------------


def _not_indexed(path: str, spec: Object) -> list[Cause]:
    names = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
    return [invalid(f"{path}.{name}", spec[name], _INDEXED) for name in names if spec.get(name) is not None]


def _indexed(path: str, spec: Object) -> list[Cause]:
    completions, most_failed = spec.get("completions"), spec.get("maxFailedIndexes")
    found = _at_most(
        f"{path}.parallelism", spec.get("parallelism"), MOST_INDEXES_AT_ONCE, "when completion mode is Indexed"
    )
    if completions is None:
        return [*found, required(f"{path}.completions", "when completion mode is Indexed")]
    if most_failed is not None and most_failed > completions:
        found.append(invalid(f"{path}.maxFailedIndexes", most_failed, "must be less than or equal to completions"))
    found += _at_most(f"{path}.maxFailedIndexes", most_failed, MOST_FAILED_INDEXES)
    if completions > MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        found += _many_completions(path, spec)
    if spec.get("successPolicy") is not None:
        found += _success_policy(f"{path}.successPolicy.rules", spec["successPolicy"].get("rules") or (), completions)
    return found


def _many_completions(path: str, spec: Object) -> list[Cause]:
    when = f"when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"
    found = [
        cause
        for name in ("parallelism", "maxFailedIndexes")
        for cause in _at_most(f"{path}.{name}", spec.get(name), MOST_WITH_MANY_COMPLETIONS, when)
    ]
    if spec.get("maxFailedIndexes") is None:
        detail = f"must be specified when completions is above {MANY_COMPLETIONS}"
        found.append(required(f"{path}.maxFailedIndexes", detail))
    return found


def _at_most(field: str, value: int | None, limit: int, when: str = "") -> list[Cause]:
    if value is None or value <= limit:
        return []
    return [invalid(field, value, f"must be less than or equal to {limit} {when}".rstrip())]


# --- podFailurePolicy -----------------------------------------------------------------------------------------------


def _failure_policy(path: str, spec: Object) -> list[Cause]:
    rules = spec["podFailurePolicy"].get("rules") or ()
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = {one.get("name") for kind in ("containers", "initContainers") for one in pod.get(kind) or ()}
    found = _few(path, rules, MOST_RULES)
    for index, rule in enumerate(rules[:MOST_RULES]):
        place = f"{path}[{index}]"
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            found.append(invalid(f"{place}.action", "FailIndex", "requires the backoffLimitPerIndex to be set"))
        if codes is not None:
            found += _exit_codes(f"{place}.onExitCodes", codes, containers)
        found += _few(f"{place}.onPodConditions", conditions, MOST_RULES)
        for number, pattern in enumerate(conditions[:MOST_RULES]):
            kind = pattern.get("type", "")
            found += problems(f"{place}.onPodConditions[{number}].type", kind, qualified_name_problems(kind))
        if codes is not None and conditions:
            found.append(_unfit(place, "specifying both OnExitCodes and OnPodConditions is not supported"))
        elif codes is None and not conditions:
            found.append(_unfit(place, "specifying one of OnExitCodes and OnPodConditions is required"))
    return found


def _unfit(field: str, detail: str) -> Cause:
    """Kubernetes does not show the value of a whole rule."""
    return (field, "FieldValueInvalid", f"Invalid value: {detail}")


def _exit_codes(path: str, codes: Mapping[str, Any], containers: Iterable[Any]) -> list[Cause]:
    values, found = codes.get("values") or [], []
    if codes.get("containerName") is not None and codes["containerName"] not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        found.append(invalid(f"{path}.containerName", codes["containerName"], detail))
    if not values:
        found.append(invalid(f"{path}.values", values, "at least one value is required"))
    found += _few(f"{path}.values", values, MOST_EXIT_CODES)
    if codes.get("operator") == "In" and 0 in values:
        field = f"{path}.values[{values.index(0)}]"
        found.append(invalid(field, 0, "must not be 0 for the In operator"))
    if values != sorted(values):
        found.append(invalid(f"{path}.values", values, "must be ordered"))
    return found


def _few(field: str, items: Any, limit: int) -> list[Cause]:
    return [too_many(field, len(items), limit)] if len(items) > limit else []


# --- successPolicy --------------------------------------------------------------------------------------------------


def _success_policy(path: str, rules: Any, completions: int) -> list[Cause]:
    if not rules:
        return [required(path, "at least one rules must be specified when the successPolicy is specified")]
    found = _few(path, rules, MOST_RULES)
    if sum(len(rule.get("succeededIndexes") or "") for rule in rules) > LONGEST_INDEXES:
        return [*found, too_long(path, LONGEST_INDEXES)]
    for index, rule in enumerate(rules[:MOST_RULES]):
        found += _success_rule(f"{path}[{index}]", rule, completions)
    return found


def _success_rule(path: str, rule: Mapping[str, Any], completions: int) -> list[Cause]:
    count, text = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and text is None:
        return [required(path, "at least one of succeededCount or succeededIndexes must be specified")]
    found = not_negative(rule, path, "succeededCount")
    named = None
    try:
        named = None if text is None else _number_of_indexes(text, completions)
    except ValueError as why:
        found.append(invalid(f"{path}.succeededIndexes", text, f"error parsing succeededIndexes: {why}"))
    limits = ((completions, "specified completions"), (named, "indexes in the specified succeededIndexes field"))
    for limit, what in limits:
        if count is not None and limit is not None and count > limit:
            detail = f"must be less than or equal to {limit} (the number of {what})"
            found.append(invalid(f"{path}.succeededCount", count, detail))
    return found


def _number_of_indexes(text: str, completions: int) -> int:
    """Of `0,2-4`: increasing, and below the completions. Raises ValueError."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        first, dash, end = part.partition("-")
        x = _index(first, completions)
        y = _index(end, completions) if dash else x
        if x <= last or (dash and y <= x):
            previous, current = (last, x) if x <= last else (x, y)
            raise ValueError(f"non-increasing order, previous: {previous}, current: {current}")
        total, last = total + y - x + 1, y
    return total


def _index(text: str, completions: int) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 10:
        raise ValueError(f'cannot convert string to integer for index: "{text[:20]}"')
    if int(text) >= completions:
        raise ValueError(f'too large index: "{text}"')
    return int(text)
