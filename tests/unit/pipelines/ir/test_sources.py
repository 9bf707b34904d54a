"""Texts reach steps as they are: whatever braces and quotes they hold, Argo takes nothing in them for a tag."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paddlecloud.local.workflow.variables import substitute_text
from paddlecloud.pipelines.ir.sources import ValueSource, literal_text, optional_variable, quoted, tag

TEXTS = st.text(alphabet=st.one_of(st.sampled_from("{}'\"\\\n\t$= a"), st.characters(exclude_categories=["Cs"])))


@given(TEXTS)
@example("{{workflow.name}}")
@example("{{{{=x}}}}")
@example("}}{{")
def test_a_literal_comes_out_as_it_went_in(text: str) -> None:
    made = ValueSource(kind="STRING", literal=text).argument()
    assert substitute_text(made, {"workflow.name": "other"}, lenient=True) == text
    assert made == literal_text(text)


@given(TEXTS)
@example("{{{x}}}")
@example("\\{{'")
def test_a_text_inside_an_expression_comes_out_as_it_went_in(text: str) -> None:
    code = tag(f"{quoted(text)} + inputs.parameters.end")
    assert substitute_text(code, {"inputs.parameters.end": "."}, lenient=False) == f"{text}."


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ({}, None),
        ({"tasks.name": "a nested DAG"}, None),
        ({"tasks.make-it.status": "Failed", "tasks.make-it.outputs.exitCode": "1"}, "default"),
        ({"tasks.make-it.status": "Succeeded", "tasks.make-it.outputs.parameters.out": "made"}, "made"),
    ],
    ids=["before the workflow runs", "before the task runs", "the task made nothing", "the task made it"],
)
def test_a_default_is_taken_only_once_the_task_has_ended(known: dict[str, str], text: str | None) -> None:
    code = tag(f"{optional_variable('tasks.make-it.outputs.parameters.out')} ?? 'default'")
    assert substitute_text(code, known, lenient=True) == (code if text is None else text)
