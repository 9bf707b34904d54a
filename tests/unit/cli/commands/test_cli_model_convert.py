"""The pod that converts models has no rights, and what it prints is judged."""

from __future__ import annotations

import json

import pytest

from paddlecloud.cli.commands.model_convert import FORMS, answer_of, converter_pod
from paddlecloud.cli.failures import ERROR, INVALID, CliError
from paddlecloud.serving import conversion


def test_the_pod_has_no_token_and_ends_by_itself() -> None:
    spec = converter_pod("ocr", "a", "paddlecloud/convert")["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["activeDeadlineSeconds"] == 1800
    assert FORMS == conversion.FORMS


def test_an_answer_is_the_last_line() -> None:
    text = "noise\n" + json.dumps({"tools": {"paddle2onnx": "2.1.0"}, "check": "answers alike"}) + "\n"
    assert answer_of(text, 0) == {"tools": {"paddle2onnx": "2.1.0"}, "check": "answers alike"}


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        ("", ERROR, "exit code 137"),
        ("Killed", ERROR, "exit code 137"),
        ("[1]", ERROR, "exit code 137"),
        ("[" * 100_000, ERROR, "exit code 137"),
        ('{"tools": {}, "refused": "output x is off by 0.25"}', INVALID, "off by 0.25"),
    ],
)
def test_anything_else_stores_nothing(text: str, code: int, why: str) -> None:
    with pytest.raises(CliError) as caught:
        answer_of(text, 137)
    assert caught.value.exit_code == code
    assert why in caught.value.why
