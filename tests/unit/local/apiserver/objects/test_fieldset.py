"""FieldsV1 sets: their algebra against plain sets of paths, their text, and what clients may write."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube.errors import BadRequest
from paddlecloud.local.apiserver.objects.fieldset import (
    MAX_DEPTH,
    Fields,
    difference,
    intersection,
    parse,
    path_text,
    paths,
    union,
)

steps = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
Paths = set[tuple[str, ...]]
path_sets = st.sets(st.lists(steps, min_size=1, max_size=3).map(tuple), max_size=8)


def build(members: Paths) -> Fields:
    """The FieldsV1 form of a set of paths, the slow and obvious way."""
    tree: Fields = {}
    for path in members:
        at = tree
        for step in path:
            at = at.setdefault(step, {})
        at["."] = {}

    def tidy(node: Fields) -> Fields:
        return {} if node.keys() == {"."} else {key: tidy(value) for key, value in node.items()}

    return tidy(tree)


@given(path_sets)
def test_a_set_holds_the_paths_it_was_made_of(members: Paths) -> None:
    assert set(paths(build(members))) == members
    assert parse(build(members)) == build(members)


@given(path_sets, path_sets)
def test_the_algebra_is_that_of_sets_of_paths(a: Paths, b: Paths) -> None:
    left, right = build(a), build(b)
    before = copy.deepcopy((left, right))
    assert union(left, right) == build(a | b)
    assert difference(left, right) == build(a - b)
    assert intersection(left, right) == build(a & b)
    assert (left, right) == before


@given(path_sets, path_sets)
def test_an_operation_without_effect_returns_the_very_same_set(a: Paths, b: Paths) -> None:
    whole = build(a | b)
    assert union(whole, build(b)) is whole
    left = build(a - b)
    assert difference(left, build(b)) is left


TEXTS = {
    ("f:data", "f:key"): ".data.key",
    ("f:spec", "f:containers", 'k:{"name":"x"}', "f:image"): '.spec.containers[name="x"].image',
    ("f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'): '.ports[containerPort=80,protocol="TCP"]',
    ("f:metadata", "f:finalizers", 'v:"a/b"'): '.metadata.finalizers[="a/b"]',
    ("f:list", "i:3"): ".list[3]",
    ("f:metadata", "f:annotations", "f:example.com/x"): ".metadata.annotations.example.com/x",
}


@pytest.mark.parametrize(("path", "text"), TEXTS.items())
def test_paths_read_as_kubectl_shows_them(path: tuple[str, ...], text: str) -> None:
    assert path_text(path) == text


def test_paths_of_a_level_come_before_those_below() -> None:
    fields: Fields = {"f:b": {}, "f:a": {".": {}, "f:x": {}}, "f:c": {"f:y": {}}}
    assert [path_text(path) for path in paths(fields)] == [".a", ".b", ".a.x", ".c.y"]


NORMAL: dict[str, tuple[Any, Fields]] = {
    "nothing": ({}, {}),
    "the root is never a member": ({".": {}, "f:a": {}}, {"f:a": {}}),
    "keys in one order": ({'k:{"b":1,"a":"x"}': {}}, {'k:{"a":"x","b":1}': {}}),
    "two spellings of one key": (
        {'k:{"b":1,"a":2}': {"f:x": {}}, 'k:{"a":2, "b":1}': {"f:y": {}}},
        {'k:{"a":2,"b":1}': {"f:x": {}, "f:y": {}}},
    ),
    "a member with nothing below": ({"f:a": {".": {}}}, {"f:a": {}}),
    "values": ({'v:"x"': {}, "v:1": {}, "v:true": {}, "i:0": {}}, {'v:"x"': {}, "v:1": {}, "v:true": {}, "i:0": {}}),
    "any field name": ({"f:": {}, "f:a/b~.": {}}, {"f:": {}, "f:a/b~.": {}}),
}


@pytest.mark.parametrize(("raw", "want"), NORMAL.values(), ids=NORMAL.keys())
def test_sets_of_clients_are_read_into_one_spelling(raw: Any, want: Fields) -> None:
    assert parse(raw) == want


DEEP: Fields = {}
for _ in range(MAX_DEPTH + 1):
    DEEP = {"f:a": DEEP}

REFUSED: dict[str, Any] = {
    "a list": [],
    "a text": "f:a",
    "a leaf that is no object": {"f:a": 1},
    "a leaf that is null": {"f:a": None},
    "no prefix": {"a": {}},
    "an unknown prefix": {"x:a": {}},
    "an empty path element": {"": {}},
    "a key that is no JSON": {"k:{": {}},
    "a key that is no object": {"k:1": {}},
    "a key of nothing": {"k:{}": {}},
    "a key with a structure": {'k:{"a":[]}': {}},
    "a value that is no JSON": {"v:x": {}},
    "a value with a structure": {"v:{}": {}},
    "an index that is no number": {"i:x": {}},
    "an index that is a boolean": {"i:true": {}},
    "nesting without end": DEEP,
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_set_is_refused(raw: Any) -> None:
    with pytest.raises(BadRequest):
        parse(raw)
