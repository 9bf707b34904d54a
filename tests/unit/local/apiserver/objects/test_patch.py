"""JSON patch and JSON merge patch: tables after the examples of RFC 6902 and RFC 7386, then properties."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube.errors import ApiError, BadRequest, Invalid, RequestEntityTooLarge
from paddlecloud.local.apiserver.objects import patch
from paddlecloud.local.apiserver.objects.patch import json_equal, json_patch, merge_patch

JSON_PATCHES: dict[str, tuple[Any, list[Any], Any]] = {
    "add a member": ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    "add replaces a member": ({"a": 1}, [{"op": "add", "path": "/a", "value": 2}], {"a": 2}),
    "add into a list": ({"l": [1, 3]}, [{"op": "add", "path": "/l/1", "value": 2}], {"l": [1, 2, 3]}),
    "add at the end by index": ({"l": [1]}, [{"op": "add", "path": "/l/1", "value": 2}], {"l": [1, 2]}),
    "add at the end by dash": ({"l": [1]}, [{"op": "add", "path": "/l/-", "value": [2]}], {"l": [1, [2]]}),
    "add a nested member": ({"a": {}}, [{"op": "add", "path": "/a/b", "value": {"c": 1}}], {"a": {"b": {"c": 1}}}),
    "add null": ({}, [{"op": "add", "path": "/a", "value": None}], {"a": None}),
    "add the whole document": ({"a": 1}, [{"op": "add", "path": "", "value": {"b": 2}}], {"b": 2}),
    "remove a member": ({"a": 1, "b": 2}, [{"op": "remove", "path": "/b"}], {"a": 1}),
    "remove from a list": ({"l": [1, 2, 3]}, [{"op": "remove", "path": "/l/1"}], {"l": [1, 3]}),
    "replace a value": ({"a": 1, "b": 2}, [{"op": "replace", "path": "/a", "value": [1]}], {"a": [1], "b": 2}),
    "replace in a list": ({"l": [1, 2]}, [{"op": "replace", "path": "/l/0", "value": 0}], {"l": [0, 2]}),
    "replace the whole document": ({"a": 1}, [{"op": "replace", "path": "", "value": {}}], {}),
    "move a member": (
        {"foo": {"bar": 1, "baz": 2}, "qux": {}},
        [{"op": "move", "from": "/foo/baz", "path": "/qux/thud"}],
        {"foo": {"bar": 1}, "qux": {"thud": 2}},
    ),
    "move within a list": ({"l": [1, 2, 3, 4]}, [{"op": "move", "from": "/l/1", "path": "/l/3"}], {"l": [1, 3, 4, 2]}),
    "move onto itself": ({"a": 1}, [{"op": "move", "from": "/a", "path": "/a"}], {"a": 1}),
    "copy": ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
    "a copy is independent": (
        {"a": {"x": 1}},
        [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "replace", "path": "/b/x", "value": 2}],
        {"a": {"x": 1}, "b": {"x": 2}},
    ),
    "test passes": ({"a": "x", "l": [1, {"b": 1.0}]}, [{"op": "test", "path": "/l/1", "value": {"b": 1}}], None),
    "tilde and slash": (
        {"a/b": 1, "m~n": 2},
        [{"op": "replace", "path": "/a~1b", "value": 3}, {"op": "remove", "path": "/m~0n"}],
        {"a/b": 3},
    ),
    "tilde one is no slash after decoding": ({"~1": 1}, [{"op": "replace", "path": "/~01", "value": 2}], {"~1": 2}),
    "an empty key": ({"": 1}, [{"op": "replace", "path": "/", "value": 2}], {"": 2}),
    "later operations see earlier ones": (
        {},
        [{"op": "add", "path": "/a", "value": {}}, {"op": "add", "path": "/a/b", "value": 1}],
        {"a": {"b": 1}},
    ),
    "unknown members of an operation are ignored": ({}, [{"op": "add", "path": "/a", "value": 1, "xyz": 1}], {"a": 1}),
}


@pytest.mark.parametrize(("doc", "ops", "want"), JSON_PATCHES.values(), ids=JSON_PATCHES.keys())
def test_json_patch_gives_what_the_rfc_says_and_leaves_its_inputs_alone(doc: Any, ops: Any, want: Any) -> None:
    before = copy.deepcopy((doc, ops))
    result = json_patch(doc, ops)
    assert result == (doc if want is None else want)
    assert result is not doc
    assert (doc, ops) == before


REFUSED: dict[str, tuple[Any, Any, type[ApiError], str]] = {
    "not a list": ({}, {"op": "add"}, BadRequest, "list of operations"),
    "an operation that is no object": ({}, ["add"], BadRequest, "operation 0 is not an object"),
    "no op": ({}, [{"path": "/a"}], BadRequest, "Unexpected kind: None"),
    "unknown op": ({}, [{"op": "spam", "path": "/a"}], BadRequest, "Unexpected kind: 'spam'"),
    "an op that is a method of ours": ({}, [{"op": "own", "path": "/a"}], BadRequest, "Unexpected kind"),
    "no path": ({}, [{"op": "remove"}], BadRequest, "path must be a JSON pointer"),
    "relative path": ({"a": 1}, [{"op": "remove", "path": "a"}], BadRequest, "path must be a JSON pointer"),
    "no value": ({}, [{"op": "add", "path": "/a"}], BadRequest, "add needs a value"),
    "no from": ({}, [{"op": "copy", "path": "/a"}], BadRequest, "from must be a JSON pointer"),
    "failed test": ({"a": 1}, [{"op": "test", "path": "/a", "value": 2}], Invalid, "testing value /a failed"),
    "true is not one": ({"a": 1}, [{"op": "test", "path": "/a", "value": True}], Invalid, "testing value /a"),
    "text is no number": ({"a": 10}, [{"op": "test", "path": "/a", "value": "10"}], Invalid, "testing value"),
    "test of what is missing": ({}, [{"op": "test", "path": "/a", "value": None}], Invalid, "missing path: /a"),
    "remove what is missing": ({}, [{"op": "remove", "path": "/a"}], Invalid, "nonexistent key: /a"),
    "replace what is missing": ({}, [{"op": "replace", "path": "/a", "value": 1}], Invalid, "missing path: /a"),
    "a parent is missing": ({}, [{"op": "add", "path": "/a/b", "value": 1}], Invalid, "missing path: /a/b"),
    "a parent is a text": ({"a": "t"}, [{"op": "add", "path": "/a/b", "value": 1}], Invalid, "missing path"),
    "index past the end": ({"l": [1]}, [{"op": "add", "path": "/l/2", "value": 1}], Invalid, "invalid index"),
    "leading zero": ({"l": [1, 2]}, [{"op": "remove", "path": "/l/01"}], Invalid, "not an array index"),
    "negative index": ({"l": [1]}, [{"op": "remove", "path": "/l/-1"}], Invalid, "not an array index"),
    "a name for an index": ({"l": [1]}, [{"op": "add", "path": "/l/bar", "value": 1}], Invalid, "not an array index"),
    "a huge index": ({"l": [1]}, [{"op": "remove", "path": "/l/" + "9" * 5000}], Invalid, "invalid index"),
    "into itself": ({"a": {"b": 1}}, [{"op": "move", "from": "/a", "path": "/a/b"}], Invalid, "into itself"),
    "no object left": ({}, [{"op": "replace", "path": "", "value": [1]}], Invalid, "not an object"),
    "remove everything": ({}, [{"op": "remove", "path": ""}], Invalid, "whole document"),
}


@pytest.mark.parametrize(("doc", "ops", "error", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_json_patch_refuses(doc: Any, ops: Any, error: type[ApiError], words: str) -> None:
    before = copy.deepcopy(doc)
    with pytest.raises(error, match=re.escape(words)):
        json_patch(doc, ops)
    assert doc == before


def test_a_patch_that_fails_half_way_changes_nothing() -> None:
    doc = {"a": {"b": 1}}
    with pytest.raises(Invalid):
        json_patch(doc, [{"op": "replace", "path": "/a/b", "value": 2}, {"op": "remove", "path": "/x"}])
    assert doc == {"a": {"b": 1}}


def test_the_number_of_operations_is_bounded() -> None:
    op = {"op": "test", "path": "/a", "value": 1}
    assert json_patch({"a": 1}, [op] * patch.MAX_OPERATIONS) == {"a": 1}
    with pytest.raises(RequestEntityTooLarge, match="allowed maximum operations in a JSON patch is 10000, got 10001"):
        json_patch({"a": 1}, [op] * (patch.MAX_OPERATIONS + 1))


def test_copies_that_double_the_document_are_stopped() -> None:
    bomb = [{"op": "copy", "from": "/a", "path": "/a/-"} for _ in range(64)]
    with pytest.raises(RequestEntityTooLarge, match="accumulated size increase"):
        json_patch({"a": ["x" * 1000]}, bomb)


def test_moves_cannot_stack_a_document_beyond_what_can_be_walked() -> None:
    ops: list[Any] = []
    for _ in range(2 * patch.MAX_DEPTH):
        ops.append({"op": "add", "path": "/b", "value": {}})
        ops.append({"op": "move", "from": "/a", "path": "/b/a"})
        ops.append({"op": "move", "from": "/b", "path": "/a"})
    with pytest.raises(BadRequest, match="too deep"):
        json_patch({"a": {}}, ops)


def test_thousands_of_writes_to_one_large_map_copy_it_once() -> None:
    doc = {"data": {f"k{i}": "v" for i in range(50_000)}}
    ops = [{"op": "add", "path": f"/data/n{i}", "value": "v"} for i in range(5_000)]
    assert len(json_patch(doc, ops)["data"]) == 55_000  # quadratic copying would run into the time limit
    assert len(doc["data"]) == 50_000


MERGE_PATCHES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({"a": [1, 2]}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({"a": 1}, {"a": [None, {"b": None}]}, {"a": [None, {"b": None}]}),
]


@pytest.mark.parametrize(("doc", "change", "want"), MERGE_PATCHES)
def test_merge_patch_gives_what_the_rfc_says_and_leaves_its_inputs_alone(doc: Any, change: Any, want: Any) -> None:
    before = copy.deepcopy((doc, change))
    assert merge_patch(doc, change) == want
    assert (doc, change) == before


@pytest.mark.parametrize("bad", [None, [], [1], "x", 1])
def test_a_merge_patch_must_be_an_object(bad: Any) -> None:
    with pytest.raises(BadRequest):
        merge_patch({}, bad)


def test_a_result_may_be_stamped_without_touching_the_stored_object() -> None:
    live = {"metadata": {"name": "x", "resourceVersion": "1"}, "spec": {"a": 1}}
    for result in (merge_patch(live, {"spec": {"a": 2}}), json_patch(live, [])):
        result["metadata"]["resourceVersion"] = "2"
        result["status"] = {}
    assert live == {"metadata": {"name": "x", "resourceVersion": "1"}, "spec": {"a": 1}}


def test_what_a_patch_does_not_touch_is_shared() -> None:
    live: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {"a": {"deep": [1]}, "b": {"deep": [2]}}}
    assert merge_patch(live, {"spec": {"b": None}})["spec"]["a"] is live["spec"]["a"]
    assert json_patch(live, [{"op": "remove", "path": "/spec/b"}])["spec"]["a"] is live["spec"]["a"]


# --- properties -------------------------------------------------------------------------------------------------------

keys = st.sampled_from(["a", "b", "c/d", "e~f", ""])
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "y"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)
objects = st.dictionaries(keys, values, max_size=4)


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _json_diff(a: Any, b: Any, path: str = "") -> list[dict[str, Any]]:
    """A JSON patch from `a` to `b`: the inverse of applying one."""
    if json_equal(a, b):
        return []
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return [{"op": "test", "path": path, "value": a}, {"op": "replace", "path": path, "value": b}]
    ops: list[dict[str, Any]] = [{"op": "remove", "path": f"{path}/{_escape(key)}"} for key in a if key not in b]
    for key, value in b.items():
        where = f"{path}/{_escape(key)}"
        ops += _json_diff(a[key], value, where) if key in a else [{"op": "add", "path": where, "value": value}]
    return ops


def _merge_diff(a: Any, b: Any) -> dict[str, Any]:
    change: dict[str, Any] = {key: None for key in a if key not in b}
    for key, value in b.items():
        if isinstance(value, dict) and isinstance(a.get(key), dict):
            change[key] = _merge_diff(a[key], value)
        elif key not in a or not json_equal(a[key], value):
            change[key] = value
    return change


def _has_null_member(value: Any) -> bool:
    if isinstance(value, dict):
        return any(v is None or _has_null_member(v) for v in value.values())
    return False


@given(objects, objects)
def test_a_json_patch_and_its_inverse_come_back_to_the_start(a: Any, b: Any) -> None:
    there = json_patch(a, _json_diff(a, b))
    assert json_equal(there, b)
    assert json_equal(json_patch(there, _json_diff(there, a)), a)


@given(objects, objects.filter(lambda b: not _has_null_member(b)))
def test_merging_the_difference_of_two_objects_into_the_first_gives_the_second(a: Any, b: Any) -> None:
    assert json_equal(merge_patch(a, _merge_diff(a, b)), b)


@given(objects, objects)
def test_a_merge_patch_applied_twice_is_a_merge_patch_applied_once(a: Any, change: Any) -> None:
    once = merge_patch(a, change)
    assert json_equal(merge_patch(once, change), once)


pointers = st.lists(st.sampled_from(["a", "0", "1", "-", "c~1d"]), max_size=4).map(
    lambda p: "".join("/" + s for s in p)
)
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "nope"]), "path": pointers},
    optional={"from": pointers, "value": values},
)


@given(objects, st.lists(operations, max_size=8))
def test_any_patch_gives_an_object_or_an_api_error_and_never_touches_its_input(doc: Any, ops: Any) -> None:
    before = copy.deepcopy((doc, ops))
    try:
        assert isinstance(json_patch(doc, ops), dict)
    except ApiError:
        pass  # refusing is fine; anything else would escape to the caller
    assert (doc, ops) == before
