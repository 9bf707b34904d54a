"""Conditions of kfp (CEL) mean the same as expressions of Argo: judged by the embedded platform's own evaluator."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.local.workflow.expressions.evaluation import evaluate
from paddlecloud.pipelines.ir import InvalidPipeline
from paddlecloud.pipelines.ir.conditions import when_of
from paddlecloud.pipelines.ir.sources import ValueSource
from paddlecloud.pipelines.ir.values import text_of

SIGNS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def judged(condition: str, **values: tuple[Any, str]) -> Any:
    inputs = {name: ValueSource(kind=kind, reference=f"inputs.parameters.{name}") for name, (_, kind) in values.items()}
    variables = {"inputs": {"parameters": {name: text_of(value, kind, name) for name, (value, kind) in values.items()}}}
    return evaluate(when_of(condition, inputs, "condition"), variables)


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9), st.sampled_from(sorted(SIGNS)))
def test_whole_numbers(left: int, right: int, sign: str) -> None:
    condition = f"int(inputs.parameter_values['a']) {sign} {right}"
    assert judged(condition, a=(left, "NUMBER_INTEGER")) is SIGNS[sign](left, right)


@given(st.floats(-1e9, 1e9), st.integers(-(10**6), 10**6), st.sampled_from(sorted(SIGNS)))
def test_a_whole_number_beside_a_fraction(left: float, right: int, sign: str) -> None:
    condition = f"inputs.parameter_values['a'] {sign} double(int(inputs.parameter_values['b']))"
    assert judged(condition, a=(left, "NUMBER_DOUBLE"), b=(right, "NUMBER_INTEGER")) is SIGNS[sign](left, right)


@given(st.text(max_size=12), st.sampled_from(["==", "!="]))
def test_texts_even_those_that_look_like_code(text: str, sign: str) -> None:
    literal = text.replace("\\", "\\\\").replace("'", "\\'")
    condition = f"inputs.parameter_values['a'] {sign} '{literal}'"
    assert judged(condition, a=(text, "STRING")) is (sign == "==")


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ("inputs.parameter_values['yes'] == true", True),
        ("inputs.parameter_values['yes'] == false", False),
        ("!(int(inputs.parameter_values['n']) > 10) && int(inputs.parameter_values['n']) > 3", True),
        ("!(int(inputs.parameter_values['n']) > 10) && !(int(inputs.parameter_values['n']) > 3)", False),
        ("inputs.parameter_values['n'] == -5 || inputs.parameter_values['yes'] == true", True),
    ],
)
def test_conditions_as_kfp_joins_them(condition: str, verdict: bool) -> None:
    assert judged(condition, yes=(True, "BOOLEAN"), n=(5, "NUMBER_INTEGER")) is verdict


@pytest.mark.parametrize(
    "condition",
    [
        "inputs.parameter_values['other'] == 1",
        "system.exit(1)",
        "(int(inputs.parameter_values['n']) > 1",
        "inputs.parameter_values['n'] == `1`",
        "inputs.parameter_values['n'] ? 1 : 2",
        "x" * 20_000,
    ],
)
def test_what_kfp_does_not_write_is_refused(condition: str) -> None:
    with pytest.raises(InvalidPipeline) as refused:
        when_of(
            condition,
            {"n": ValueSource(kind="NUMBER_INTEGER", literal="1")},
            "root.dag.tasks.a.triggerPolicy.condition",
        )
    assert refused.value.path == "root.dag.tasks.a.triggerPolicy.condition"
