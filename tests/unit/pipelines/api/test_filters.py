"""Filters of lists, as both generations of kfp's client and people's scripts write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paddlecloud.pipelines.api import filters
from paddlecloud.pipelines.api.replies import RequestRefused

FIELDS = ("created_at", "name", "id", "state")
ROWS = [
    {"id": "1", "name": "exp one", "state": "SUCCEEDED", "created_at": 100.0},
    {"id": "2", "name": "exp two", "state": "FAILED", "created_at": 200.5},
    {"id": "3", "name": "other", "state": "RUNNING", "created_at": 300.0},
]


def chosen(*predicates: dict[str, Any]) -> list[str]:
    parsed = filters.parse(json.dumps({"predicates": predicates}), FIELDS)
    return [row["id"] for row in ROWS if all(predicate.holds(row) for predicate in parsed)]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ({"op": 1, "key": "name", "stringValue": "exp one"}, ["1"]),
        ({"operation": 1, "key": "display_name", "stringValue": "exp one"}, ["1"]),
        ({"operation": "EQUALS", "key": "display_name", "string_value": "exp two"}, ["2"]),
        ({"op": "NOT_EQUALS", "key": "name", "string_value": "exp one"}, ["2", "3"]),
        ({"op": "IS_SUBSTRING", "key": "name", "string_value": "exp"}, ["1", "2"]),
        ({"op": 9, "key": "name", "string_value": "oth"}, ["3"]),
        ({"op": "IN", "key": "name", "string_values": {"values": ["other", "none"]}}, ["3"]),
        ({"op": "IN", "key": "id", "int_values": {"values": [1, 3]}}, ["1", "3"]),
        ({"op": "EQUALS", "key": "status", "string_value": "Succeeded"}, ["1"]),
        ({"op": "EQUALS", "key": "status", "string_value": "Error"}, ["2"]),
        ({"operation": "EQUALS", "key": "state", "string_value": "RUNNING"}, ["3"]),
        ({"operation": 3, "key": "created_at", "timestamp_value": "1970-01-01T00:01:40Z"}, ["2", "3"]),
        ({"operation": 5, "key": "created_at", "timestampValue": "1970-01-01T00:01:40Z"}, ["1", "2", "3"]),
        ({"operation": "LESS_THAN", "key": "created_at", "timestamp_value": "1970-01-01T00:03:20.5Z"}, ["1"]),
        ({"operation": 7, "key": "created_at", "timestamp_value": "1970-01-01T00:03:20.5Z"}, ["1", "2"]),
    ],
)  # fmt: skip
def test_a_predicate_chooses_rows(predicate: dict[str, Any], expected: list[str]) -> None:
    assert chosen(predicate) == expected


def test_all_predicates_must_hold_and_no_filter_chooses_all() -> None:
    both = {"op": 9, "key": "name", "stringValue": "exp"}, {"op": 1, "key": "status", "stringValue": "Failed"}
    assert chosen(*both) == ["2"]
    assert filters.parse("", FIELDS) == filters.parse("{}", FIELDS) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "filter is not JSON"),
        ("[]", "filter.predicates must be a list"),
        ('{"predicates": 1}', "filter.predicates must be a list"),
        ('{"predicates": [1]}', r"filter.predicates\[0\] must be an object"),
        ('{"predicates": [{"op": 99, "key": "name", "stringValue": "x"}]}', "known are EQUALS, NOT_EQUALS"),
        ('{"predicates": [{"op": 1, "key": "nmae", "stringValue": "x"}]}', "known are created_at, name, id, state"),
        ('{"predicates": [{"op": 1, "key": "name"}]}', "must have one value"),
        ('{"predicates": [{"op": 1, "key": "name", "stringValue": "x", "intValue": 1}]}', "must have one value"),
        ('{"predicates": [{"op": 1, "key": "name", "stringValue": [1]}]}', "must be a text"),
        ('{"predicates": [{"op": 8, "key": "name", "stringValue": "x"}]}', "must be a list"),
        ('{"predicates": [{"op": 1, "key": "created_at", "stringValue": "today"}]}', "is no time"),
        ('{"predicates": [{"op": 9, "key": "created_at", "stringValue": "2026"}]}', "a time has no substrings"),
        (json.dumps({"predicates": [{"op": 1, "key": "name", "stringValue": "x"}] * 21}), "at most 20"),
        ("[" * 100_000, "filter is not JSON"),
    ],
)
def test_what_is_wrong_is_named(text: str, sentence: str) -> None:
    with pytest.raises(RequestRefused, match=sentence) as refused:
        filters.parse(text, FIELDS)
    assert refused.value.status == 400
