"""Texts reach steps as they are: whatever braces and quotes they hold, Argo takes nothing in them for a tag."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from paddlecloud.local.workflow.variables import substitute_text
from paddlecloud.pipelines.ir.sources import Source, literal_text, quoted, tag

TEXTS = st.text(alphabet=st.one_of(st.sampled_from("{}'\"\\\n\t$= a"), st.characters(exclude_categories=["Cs"])))


@given(TEXTS)
@example("{{workflow.name}}")
@example("{{{{=x}}}}")
@example("}}{{")
def test_a_literal_comes_out_as_it_went_in(text: str) -> None:
    made = Source(kind="STRING", literal=text).argument()
    assert substitute_text(made, {"workflow.name": "other"}, lenient=True) == text
    assert made == literal_text(text)


@given(TEXTS)
@example("{{{x}}}")
@example("\\{{'")
def test_a_text_inside_an_expression_comes_out_as_it_went_in(text: str) -> None:
    code = tag(f"{quoted(text)} + inputs.parameters.end")
    assert substitute_text(code, {"inputs.parameters.end": "."}, lenient=False) == f"{text}."
