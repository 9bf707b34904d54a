"""Tables: the envelope, columns of custom kinds, and ages as kubectl prints them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.resource import PODS, Resource
from paddlecloud.local.apiserver.registry import Column, KindInfo
from paddlecloud.local.apiserver.table.table import IncludeObject, human_duration, to_table

NOW = 1_700_000_000.0
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-10, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (0.9, "0s"),
        (59, "59s"),
        (119, "119s"),
        (120, "2m"),
        (123, "2m3s"),
        (599, "9m59s"),
        (600, "10m"),
        (10799, "179m"),
        (3 * 3600, "3h"),
        (4 * 3600 + 300, "4h5m"),
        (8 * 3600 - 1, "7h59m"),
        (8 * 3600, "8h"),
        (47 * 3600 + 3599, "47h"),
        (48 * 3600, "2d"),
        (3 * 86400 + 4 * 3600, "3d4h"),
        (8 * 86400 - 1, "7d23h"),
        (8 * 86400, "8d"),
        (12 * 86400, "12d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (735 * 86400, "2y5d"),
        (8 * 365 * 86400, "8y"),
        (100 * 365 * 86400, "100y"),
    ],
)
def test_durations_read_as_kubectl_prints_them(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def widget(name: str = "w", **content: Any) -> dict[str, Any]:
    created = rfc3339(NOW - 125)
    return {
        "kind": "Widget",
        "apiVersion": "example.com/v1",
        "metadata": {"name": name, "creationTimestamp": created},
        **content,
    }


def kind(*columns: Column) -> KindInfo:
    return KindInfo(WIDGETS, "widget", columns=columns, custom=True)


def cell(column: Column, obj: dict[str, Any]) -> Any:
    table = to_table([obj], kind(column), now=NOW)
    return table["rows"][0]["cells"][1]


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("string", "red", "red"),
        ("string", 7, "7"),
        ("string", True, "true"),
        ("string", ["a", 1], '["a",1]'),
        ("string", {"a": 1}, '{"a":1}'),
        ("integer", 7, 7),
        ("integer", 7.9, 7),
        ("integer", "7", None),
        ("integer", True, None),
        ("number", 7, 7.0),
        ("boolean", False, False),
        ("boolean", "false", None),
        ("date", rfc3339(NOW - 3600 * 5), "5h"),
        ("date", "soon", "<invalid>"),
        ("date", "", "<unknown>"),
        ("date", 5, None),
        ("string", None, None),
    ],
)
def test_cells_of_custom_kinds_follow_the_type_of_their_column(type_: str, value: Any, expected: Any) -> None:
    assert cell(Column("X", type_, ".spec.x"), widget(spec={"x": value})) == expected


def test_a_missing_field_is_an_empty_cell() -> None:
    assert cell(Column("X", "string", ".spec.x"), widget()) is None


def test_filters_reach_into_conditions() -> None:
    obj = widget(status={"conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}]})
    assert cell(Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'), obj) == "True"


def test_column_definitions_carry_what_kubectl_needs() -> None:
    column = Column("Phase", "string", ".status.phase", priority=1, format="", description="Where it stands.")
    table = to_table([], kind(column), now=NOW, list_metadata={"resourceVersion": "9"})
    assert table["kind"] == "Table"
    assert table["apiVersion"] == "meta.k8s.io/v1"
    assert table["metadata"] == {"resourceVersion": "9"}
    assert table["rows"] == []
    assert [(d["name"], d["type"], d["format"], d["priority"]) for d in table["columnDefinitions"]] == [
        ("Name", "string", "name", 0),
        ("Phase", "string", "", 1),
    ]
    assert table["columnDefinitions"][1]["description"] == "Where it stands."


def test_a_custom_kind_without_columns_shows_name_and_age() -> None:
    table = to_table([widget()], kind(), now=NOW)
    assert [d["name"] for d in table["columnDefinitions"]] == ["Name", "Age"]
    assert table["rows"][0]["cells"] == ["w", "2m5s"]


def test_a_bad_json_path_falls_back_to_name_and_age() -> None:
    table = to_table([widget()], kind(Column("X", "string", ".spec[")), now=NOW)
    assert table["rows"][0]["cells"] == ["w", "2m5s"]


@pytest.mark.parametrize(
    ("include", "expected"),
    [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "Widget")],
)
def test_rows_carry_as_much_of_the_object_as_asked(include: IncludeObject, expected: str | None) -> None:
    row = to_table([widget(spec={})], kind(), now=NOW, include_object=include)["rows"][0]
    assert (row["object"]["kind"] if "object" in row else None) == expected
    if include == "Metadata":
        assert "spec" not in row["object"]
        assert row["object"]["metadata"]["name"] == "w"


def test_watch_events_after_the_first_leave_the_definitions_out() -> None:
    assert to_table([widget()], kind(), now=NOW, headers=False)["columnDefinitions"] is None


def test_an_object_of_unexpected_shape_does_not_hide_the_others() -> None:
    good = {"metadata": {"name": "good"}, "spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Pending"}}
    bad = {"metadata": {"name": "bad"}, "spec": "text", "status": {"containerStatuses": 7}}
    rows = to_table([bad, good], KindInfo(PODS, "pod"), now=NOW)["rows"]
    assert [row["cells"][0] for row in rows] == ["bad", "good"]
    assert rows[0]["cells"][2] is None
    assert rows[1]["cells"][2] == "Pending"


@given(st.integers(0, 10**10))
def test_a_duration_never_has_more_than_two_units(seconds: int) -> None:
    text = human_duration(seconds)
    assert 1 <= sum(text.count(unit) for unit in "smhdy") <= 2
