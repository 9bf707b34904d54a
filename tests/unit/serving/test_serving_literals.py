"""What clients of Paddle Serving's pipelines write as texts, and what is meant by it."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.serving import literals


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2, 3]", [1, 2, 3]),
        ("[[0.5, -1e-3], [1., 2]]", [[0.5, -0.001], [1.0, 2]]),
        ("0.0137, -0.1136, 0.2553", [0.0137, -0.1136, 0.2553]),
        ("(1, 2)", [1, 2]),
        ("(1,)", [1]),
        ("['我爱北京', \"it's\"]", ["我爱北京", "it's"]),
        (r"['a\'b', 'c\\d', '\n', '\x7f', '\u4f60']", ["a'b", "c\\d", "\n", "\x7f", "你"]),
        ("{'x': [1, None, True], 'y': 'z, (', }", {"x": [1, None, True], "y": "z, ("}),
        ('{"x": [null, true]}', {"x": [None, True]}),
        ("7", 7),
        ("True", True),
    ],
)
def test_values_are_read(text: str, value: Any) -> None:
    assert literals.read(text) == value


@pytest.mark.parametrize(
    "text",
    ["我爱北京天安门", "/9j/4AAQSkZJRgABAQ", "9j4AAQ==", "", "true", "null", "nan", "[1, 2", "'open", "f(1)", "(1 + 2)",
     "1], [2", "{1: 2}", "__import__('os')", "[x for x in y]", "[" * 100_000, "1, [", r"'\N{DASH}'", "don't",
     r"['\Uffffffff']", r"['\U00110000']", r"['a\']"],
)  # fmt: skip
def test_the_rest_are_plain_texts(text: str) -> None:
    assert literals.read(text) == text


def _listed(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    return {key: _listed(item) for key, item in value.items()} if isinstance(value, dict) else value


_SIMPLE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_VALUES = st.recursive(
    _SIMPLE,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=60)
@given(_VALUES.filter(lambda value: value != ()))
def test_what_python_writes_is_read_as_python_would(value: Any) -> None:
    text = repr(value)
    assert literals.read(text) == _listed(ast.literal_eval(text))
