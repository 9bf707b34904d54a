"""Expressions and tags mean what they mean in Argo: `tests/argo/recorded.jsonl` has its verdicts."""

from __future__ import annotations

import json
import time
import tracemalloc
from typing import Any

import pytest

from argo.expressions import JSONPATH_VARIABLES, TEXT_VARIABLES, VARIABLES
from argo.record import RECORDED
from paddlecloud.local.workflow.expressions.evaluation import evaluate
from paddlecloud.local.workflow.expressions.jsonpath import jsonpath
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.expressions.values import shown, to_float, to_int, to_json
from paddlecloud.local.workflow.variables import UnresolvedVariable, expression_variables, substitute, substitute_text

VERDICTS = [json.loads(line) for line in RECORDED.read_text().splitlines()]
FUNCTIONS = {"asInt": to_int, "asFloat": to_float, "jsonpath": jsonpath, "toJson": to_json}


def outcome(expression: str) -> dict[str, Any]:
    try:
        value = evaluate(expression, {**VARIABLES, **JSONPATH_VARIABLES, **FUNCTIONS})
        return {"value": json.loads(to_json(value)), "shown": shown(value)}
    except ExpressionError as why:
        return {"error": str(why)}


def test_an_expression_that_has_a_value_in_argo_has_the_same_here() -> None:
    asked = [each for each in VERDICTS if "expression" in each and "value" in each]
    assert len(asked) > 400
    different = {
        each["expression"]: (each["value"], found)
        for each in asked
        if (found := outcome(each["expression"])) != {"value": each["value"], "shown": each["shown"]}
        and not _is_folded(each["expression"])
    }
    assert different == {}


def _is_folded(expression: str) -> bool:
    """Argo's compiler simplifies `x and true` to `x`, whatever type x has; here `and` needs a bool."""
    return any(sign in expression for sign in (" and ", " or ", " && ", " || "))


def test_an_expression_that_argo_refuses_is_refused_here_or_has_a_value() -> None:
    """Never anything else: an exception would end the controller's pass for all workflows."""
    refused = [each["expression"] for each in VERDICTS if "expression" in each and "error" in each]
    kinds = {"error" if "error" in outcome(each) else "value" for each in refused}
    assert kinds == {"error", "value"}
    assert sum("error" in outcome(each) for each in refused) > 0.9 * len(refused)


@pytest.mark.parametrize(
    "verdict", [each for each in VERDICTS if "template" in each], ids=lambda each: each["template"]
)
def test_tags_are_replaced_as_argo_replaces_them(verdict: dict[str, Any]) -> None:
    text = json.loads(verdict["template"])
    if "value" in verdict:
        expected = json.loads(verdict["value"])
        assert substitute_text(text, TEXT_VARIABLES, lenient=verdict["lenient"]) == expected
    elif not verdict["lenient"]:
        with pytest.raises(UnresolvedVariable):
            substitute_text(text, TEXT_VARIABLES, lenient=False)


def test_tags_are_replaced_at_every_depth_and_nothing_else_changes() -> None:
    spec = {"args": ["{{item}}", 3, None], "env": [{"name": "X", "value": "{{=item}}!"}]}
    assert substitute(spec, {"item": "a"}, lenient=False) == {
        "args": ["a", 3, None],
        "env": [{"name": "X", "value": "a!"}],
    }
    assert spec["args"] == ["{{item}}", 3, None]


def test_an_output_that_a_skipped_step_did_not_make_is_an_error_also_where_others_may_wait() -> None:
    with pytest.raises(UnresolvedVariable, match="skipped step"):
        substitute_text("{{steps.a.outputs.result}}", {"steps.a.outputs.result": None}, lenient=True)


LAUGHS = "let a = 1..40; " + "".join(
    f"let {name} = [{', '.join([before] * 40)}]; " for before, name in zip("abcde", "bcdef", strict=True)
)
"""Arrays in arrays: little text, and 40 ** 6 elements for all who go through them."""


@pytest.mark.parametrize(
    "expression",
    [
        "1..1000000000",
        "repeat('x', 100000000)",
        "reduce(1..10000, #acc + #acc, 'x')",
        "map(1..1000, map(1..1000, #))",
        "let a = repeat('x', 1000000); let b = a + a; let c = b + b; c + c",
        "uniq(1..100000)",
        "let a = 1..900000; let b = 1..900000; all(1..1000, a == b)",
        "let a = 1..900000; any(1..1000, -# in a)",
        "let s = repeat('a', 900000); all(1..50000, not (s contains 'aaaaaaaaaab'))",
        f"{LAUGHS} len(toJSON(f))",
        f"{LAUGHS} len(toJson(f))",
        f"{LAUGHS} len(sprig.toRawJson(f))",
        "let s = repeat(' ', 100000); toJson(1..40000, s)",
        "let s = repeat(' ', 100000); sprig.toJson(1..40000, s)",
        f"{LAUGHS} f == f",
        f"{LAUGHS} string(f)",
        "sprig.round(1, 200000000)",
        "sprig.replace('a', repeat('b', 100000), repeat('a', 100000))",
        "sprig.join(repeat('b', 100000), 1..40000)",
        f"sprig.without(1..100000, {', '.join(str(-number) for number in range(1, 2000))})",
        "let s = repeat('a', 20000); all(1..20000, not (s matches 'a{1,9}b'))",
        "replace(repeat('a', 10000), 'a', repeat('b', 10000))",
        "jsonpath(toJSON(1..20000), '$..*..*..*..*..*')",
        f"let t = toJSON(1..2500); jsonpath(t, '$[?({'||'.join(['@==2'] * 800)})]')",
        f"jsonpath(toJSON(1..2000), '$[{','.join(['*'] * 4000)}]')",
        f"jsonpath('[{','.join(['1'] * 1000)}]', '$[?({'||'.join(['@==2'] * 600)})]')",
        f"jsonpath('[1]', '$[{','.join(['*'] * 4000)}]')",
        f"jsonpath('[1]', '${'[?(@' * 900}{')]' * 900}')",
        f"jsonpath('[[[1]]]', '$[?({'||'.join(['@..x'] * 1000)})]{'[*]' * 9}')",
        f"jsonpath('{'[' * 400}1{']' * 400}', '$..*..*..*..*')",
        f"jsonpath('{'[' * 5000}1{']' * 5000}', '$')",
        f"jsonpath('1', '${'.a' * 2000}')",
        "(" * 5000 + "1" + ")" * 5000,
        "-" * 5000 + "1",
        "[" * 3000,
        "1" + " + 1" * 200_000,
        "1" + " + 1" * 3000,
        "9" * 5000 + " > 1",
        "0x_",
    ],
    ids=lambda expression: expression[:30],
)
def test_an_expression_cannot_hold_the_control_plane(expression: str) -> None:
    began = time.process_time()
    with pytest.raises(ExpressionError):
        evaluate(expression, expression_variables({}))
    assert time.process_time() - began < 2


def test_a_regular_expression_takes_time_in_proportion_to_the_text() -> None:
    assert evaluate("repeat('a', 100000) matches '(a+)+$b'", {}) is False


def test_json_is_written_as_go_writes_it() -> None:
    value = """{"b": "<&>", "a": [1000000.0, 1e21, 0.5, 3], "c": "\\u2028"}"""
    variables = {**expression_variables({}), "value": evaluate(f"fromJSON({value!r})", {})}
    assert evaluate("sprig.toRawJson(value)", variables) == r'{"a":[1000000,1e+21,0.5,3],"b":"<&>","c":"\u2028"}'
    escaped = r'{"a":[1000000,1e+21,0.5,3],"b":"\u003c\u0026\u003e","c":"\u2028"}'
    assert [evaluate(f"{name}(value)", variables) for name in ("toJson", "sprig.toJson")] == [escaped, escaped]


def test_names_lead_only_to_what_was_offered() -> None:
    for expression in ("name.__class__", "len.__globals__", "item.__class__", "__import__('os')", "sprig.upper.x"):
        found = outcome(expression)
        assert "error" in found or found["value"] is None


def test_long_expressions_are_not_kept_in_memory() -> None:
    tracemalloc.start()
    try:
        for number in range(40):
            evaluate(f"{number}" + " + 1" * 200 + " " * 60_000, {})
        assert tracemalloc.get_traced_memory()[0] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("layout", "shown_as"),
    [
        ("2006", "2026"), ("2006-01-02T15:04:05Z07:00", "2026-03-07T09:05:00Z"), ("Jan _2, 3:04 PM", "Mar  7, 9:05 AM"),
        ("Mon 1/2/06", "Sat 3/7/26"),
    ],
)  # fmt: skip
def test_a_time_is_shown_in_a_layout_of_go(layout: str, shown_as: str) -> None:
    made = "2026-03-07T09:05:00Z"
    known = {"workflow.creationTimestamp": made, "workflow.creationTimestamp.RFC3339": made}
    tag = f"{{{{=sprig.date('{layout}', workflow.creationTimestamp)}}}}"
    assert substitute_text(tag, known, lenient=False) == shown_as
    with pytest.raises(UnresolvedVariable, match="needs a time"):
        substitute_text("{{=sprig.date('2006', 'today')}}", known, lenient=False)
