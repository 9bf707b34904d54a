"""Ratcheting: mistakes in what a write leaves alone are forgiven."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.local.apiserver.schema.ratchet import forgive

OLD = {"spec": {"size": 99, "parts": [{"name": "a", "w": -1}, {"name": "b"}], "map": {"k.with.dots": "long"}, "n": 1}}


@pytest.mark.parametrize(
    ("field", "new", "kept"),
    [
        ("spec.size", {"size": 99, "n": 2}, False),
        ("spec.size", {"size": 98}, True),
        ("spec.parts[0].w", {"parts": [{"name": "a", "w": -1}, {"name": "c"}]}, False),
        ("spec.parts[0].w", {"parts": [{"name": "z", "w": -2}]}, True),
        ("spec.parts[1].w", {"parts": [{"name": "x"}, {"name": "b"}]}, False),  # its parent is as it was
        ("spec.parts[1].w", {"parts": [{"name": "x"}, {"name": "c"}]}, True),
        ("spec.parts[5].w", {"parts": []}, True),
        ("spec.map.k.with.dots", {"map": {"k.with.dots": "long"}}, False),
        ("spec.required", {"n": 2}, True),
        ("spec.n", {**OLD["spec"], "n": True}, True),  # which Python calls equal to 1
        ("spec.n", {**OLD["spec"], "n": 1.0}, False),
        ("", {"size": 99}, True),
    ],
)
def test_a_cause_is_kept_when_its_place_changed(field: str, new: Any, kept: bool) -> None:
    cause = (field, "FieldValueInvalid", "whatever")
    assert forgive([cause], {"spec": new}, OLD) == ([cause] if kept else [])
