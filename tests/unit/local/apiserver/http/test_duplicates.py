"""Doubled fields are found wherever they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.local.apiserver.http.duplicates import duplicate_fields


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"{}", []),
        (b'{"a":1,"b":{"a":1}}', []),
        (b'{"a":1,"a":2}', ["a"]),
        (b'{"spec":{"x":[{"n":1},{"n":1,"m":2,"n":3}]}}', ["spec.x[1].n"]),
        (b'{"a":{"b":1,"b":2},"a":{"c":1,"c":2}}', ["a", "a.c"]),
        (b"no json", []),
        (b"[1,{", []),
    ],
)
def test_each_is_named_by_its_path(body: bytes, found: list[str]) -> None:
    assert duplicate_fields(body) == found


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(value=JSON)
def test_what_has_no_duplicates_has_none(value: Any) -> None:
    assert duplicate_fields(json.dumps(value).encode()) == []
