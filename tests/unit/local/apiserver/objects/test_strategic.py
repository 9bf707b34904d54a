"""Strategic merge: the documented scenarios of Kubernetes, as tables over a schema of pods."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube.errors import ApiError, BadRequest, Invalid
from paddlecloud.local.apiserver.objects.strategic_merge import strategic_merge
from paddlecloud.local.apiserver.schema.structural import Node


def merging(key: str | None, items: dict[str, Any]) -> dict[str, Any]:
    """The schema of a list that strategic merge merges."""
    schema = {"type": "array", "items": items, "x-kubernetes-patch-strategy": "merge"}
    return {**schema, "x-kubernetes-patch-merge-key": key} if key else schema


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


TEXT = {"type": "string"}
STRINGS = {"type": "object", "additionalProperties": TEXT}
CONTAINER = obj(
    name=TEXT,
    image=TEXT,
    args={"type": "array", "items": TEXT},
    ports=merging("containerPort", obj(containerPort={"type": "integer"}, protocol=TEXT, name=TEXT)),
    env=merging("name", obj(name=TEXT, value=TEXT)),
)
POD = Node(
    obj(
        metadata=obj(name=TEXT, labels=STRINGS, finalizers=merging(None, TEXT)),
        spec=obj(
            containers=merging("name", CONTAINER),
            tolerations={"type": "array", "items": obj(key=TEXT, effect=TEXT)},
            nodeSelector=STRINGS,
            selector={**STRINGS, "x-kubernetes-patch-strategy": "replace"},
            strategy={**obj(type=TEXT, rollingUpdate=obj(maxSurge={})), "x-kubernetes-patch-strategy": "retainKeys"},
            keyless={"type": "array", "items": obj(a=TEXT), "x-kubernetes-patch-strategy": "merge"},
        ),
    ),
    {},
)


def named(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names]


# Each row: the spec before, the patch of the spec, the spec after.
SPECS: dict[str, tuple[Any, Any, Any]] = {
    "a new container joins the others, in front": (
        {"containers": [{"name": "nginx", "image": "nginx"}]},
        {"containers": [{"name": "redis", "image": "redis"}]},
        {"containers": [{"name": "redis", "image": "redis"}, {"name": "nginx", "image": "nginx"}]},
    ),
    "a known container is changed in place and keeps its other fields": (
        {"containers": [{"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "1"}]},
        {"containers": [{"name": "b", "image": "2"}]},
        {"containers": [{"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "2"}]},
    ),
    "lists inside merged elements merge by their own key": (
        {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "1"}]}]},
        {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]},
        {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}]},
    ),
    "a list without a strategy is replaced": (
        {"tolerations": [{"key": "a"}, {"key": "b"}]},
        {"tolerations": [{"key": "c"}]},
        {"tolerations": [{"key": "c"}]},
    ),
    "an atomic list inside a merged element is replaced": (
        {"containers": [{"name": "a", "args": ["x", "y"]}]},
        {"containers": [{"name": "a", "args": ["z"]}]},
        {"containers": [{"name": "a", "args": ["z"]}]},
    ),
    "maps merge and null deletes": (
        {"nodeSelector": {"a": "1", "b": "2"}},
        {"nodeSelector": {"a": None, "c": "3", "d": None}},
        {"nodeSelector": {"b": "2", "c": "3"}},
    ),
    "a map whose strategy is replace is replaced": (
        {"selector": {"a": "1", "b": "2"}},
        {"selector": {"c": "3"}},
        {"selector": {"c": "3"}},
    ),
    "$patch: replace on a map": (
        {"nodeSelector": {"a": "1"}},
        {"nodeSelector": {"$patch": "replace", "b": "2"}},
        {"nodeSelector": {"b": "2"}},
    ),
    "$patch: delete on a map empties it": (
        {"nodeSelector": {"a": "1"}},
        {"nodeSelector": {"$patch": "delete"}},
        {"nodeSelector": {}},
    ),
    "$patch: merge on a map is what happens anyway": (
        {"nodeSelector": {"a": "1"}},
        {"nodeSelector": {"$patch": "merge", "b": "2"}},
        {"nodeSelector": {"a": "1", "b": "2"}},
    ),
    "$patch: delete on an element": (
        {"containers": named("a", "b", "c")},
        {"containers": [{"name": "b", "$patch": "delete"}]},
        {"containers": named("a", "c")},
    ),
    "$patch: delete of an element that is not there": (
        {"containers": named("a")},
        {"containers": [{"name": "z", "$patch": "delete"}]},
        {"containers": named("a")},
    ),
    "$patch: replace in a list": (
        {"containers": named("a", "b")},
        {"containers": [*named("c"), {"$patch": "replace"}]},
        {"containers": named("c")},
    ),
    "$patch: replace in an empty list empties it": (
        {"containers": named("a", "b")},
        {"containers": [{"$patch": "replace"}]},
        {"containers": []},
    ),
    "$retainKeys switches a union": (
        {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
        {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
        {"strategy": {"type": "Recreate"}},
    ),
    "$setElementOrder orders what is there": (
        {"containers": named("a", "b", "c")},
        {"$setElementOrder/containers": named("c", "a", "b")},
        {"containers": named("c", "a", "b")},
    ),
    "$setElementOrder places a new element": (
        {"containers": named("a", "b")},
        {"$setElementOrder/containers": named("a", "new", "b"), "containers": named("new")},
        {"containers": named("a", "new", "b")},
    ),
    "$setElementOrder keeps server-only elements where they stood": (
        {"containers": named("a", "sidecar", "b")},
        {"$setElementOrder/containers": named("a", "b"), "containers": named("b", image="2")},
        {"containers": [*named("a", "sidecar"), *named("b", image="2")]},
    ),
    "$setElementOrder together with a deletion": (
        {"containers": named("a", "b", "c")},
        {"$setElementOrder/containers": named("c", "a"), "containers": [{"name": "b", "$patch": "delete"}]},
        {"containers": named("c", "a")},
    ),
    "the order of the patch wins over the live order": (
        {"containers": named("a", "b", "c")},
        {"containers": named("c", "a")},
        {"containers": named("b", "c", "a")},
    ),
    "directives and nulls do not survive in what is new": (
        {},
        {
            "containers": [{"name": "a", "$patch": "delete"}, {"name": "b", "image": None, "args": ["x"]}],
            "$setElementOrder/containers": named("b"),
            "strategy": {"$retainKeys": ["type"], "type": "Recreate"},
            "nodeSelector": {"$patch": "delete"},
            "selector": {"$patch": "replace", "a": "1"},
        },
        {
            "containers": [{"name": "b", "args": ["x"]}],
            "strategy": {"type": "Recreate"},
            "selector": {"a": "1"},
        },
    ),
    "what the schema does not know merges as maps and replaces as lists": (
        {"unknown": {"m": {"a": 1}, "l": [1, 2]}},
        {"unknown": {"m": {"b": 2}, "l": [3]}},
        {"unknown": {"m": {"a": 1, "b": 2}, "l": [3]}},
    ),
    "a value of another type replaces": (
        {"nodeSelector": "odd"},
        {"nodeSelector": {"a": "1"}},
        {"nodeSelector": {"a": "1"}},
    ),
    "two live elements of one key: the first is changed": (
        {"containers": [{"name": "a", "ports": [{"containerPort": 1, "protocol": "TCP"}, {"containerPort": 1}]}]},
        {"containers": [{"name": "a", "ports": [{"containerPort": 1, "name": "web"}]}]},
        {
            "containers": [
                {"name": "a", "ports": [{"containerPort": 1, "protocol": "TCP", "name": "web"}, {"containerPort": 1}]}
            ]
        },
    ),
}


@pytest.mark.parametrize(("before", "change", "after"), SPECS.values(), ids=SPECS.keys())
def test_strategic_merge_of_a_spec(before: Any, change: Any, after: Any) -> None:
    live, patch = {"spec": before}, {"spec": change}
    untouched = copy.deepcopy((live, patch))
    assert strategic_merge(live, patch, POD) == {"spec": after}
    assert (live, patch) == untouched


FINALIZERS: dict[str, tuple[Any, Any, Any]] = {
    "union without duplicates": (["a", "b"], {"finalizers": ["c", "b"]}, ["c", "a", "b"]),
    "delete some": (["a", "b", "c"], {"$deleteFromPrimitiveList/finalizers": ["a", "z"]}, ["b", "c"]),
    "delete from a list that is not there": (None, {"$deleteFromPrimitiveList/finalizers": ["a"]}, None),
    "order": (["a", "b"], {"$setElementOrder/finalizers": ["b", "a"]}, ["b", "a"]),
    "delete, add and order": (
        ["a", "b"],
        {
            "$deleteFromPrimitiveList/finalizers": ["a"],
            "$setElementOrder/finalizers": ["c", "b"],
            "finalizers": ["c"],
        },
        ["c", "b"],
    ),
}


@pytest.mark.parametrize(("before", "change", "after"), FINALIZERS.values(), ids=FINALIZERS.keys())
def test_lists_of_primitives_merge_as_sets(before: Any, change: Any, after: Any) -> None:
    live = {"metadata": {} if before is None else {"finalizers": before}}
    assert strategic_merge(live, {"metadata": change}, POD)["metadata"].get("finalizers") == after


REFUSED: dict[str, tuple[Any, Any, type[ApiError], str]] = {
    "no merge key in the patch": (
        {"containers": named("a")},
        {"containers": [{"image": "x"}]},
        Invalid,
        "merge key: name",
    ),
    "no merge key in a deletion": (
        {"containers": named("a")},
        {"containers": [{"$patch": "delete"}]},
        Invalid,
        "merge key",
    ),
    "a merge key that is no scalar": ({"containers": named("a")}, {"containers": [{"name": {}}]}, Invalid, "merge key"),
    "unknown directive": ({"nodeSelector": {}}, {"nodeSelector": {"$patch": "spam"}}, BadRequest, "unknown patch type"),
    "unknown directive in a list": (
        {"containers": named("a")},
        {"containers": [{"name": "a", "$patch": 1}]},
        BadRequest,
        "unknown patch type",
    ),
    "$retainKeys forgets a key of the patch": (
        {"strategy": {}},
        {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {}}},
        BadRequest,
        "retainKeys",
    ),
    "$retainKeys is no list": ({"strategy": {}}, {"strategy": {"$retainKeys": "type"}}, BadRequest, "retainKeys"),
    "$setElementOrder is no list": (
        {"containers": named("a")},
        {"$setElementOrder/containers": "a"},
        BadRequest,
        "setElementOrder",
    ),
    "$setElementOrder forgets an element of the patch": (
        {"containers": named("a")},
        {"$setElementOrder/containers": named("a"), "containers": named("b")},
        Invalid,
        "order in patch list",
    ),
    "$setElementOrder in another order than the patch": (
        {"containers": named("a", "b")},
        {"$setElementOrder/containers": named("a", "b"), "containers": named("b", "a")},
        Invalid,
        "order in patch list",
    ),
    "$deleteFromPrimitiveList with maps": (
        {"containers": named("a")},
        {"$deleteFromPrimitiveList/containers": named("a")},
        BadRequest,
        "primitive list",
    ),
    "maps and scalars in one list": ({"containers": named("a")}, {"containers": ["b"]}, Invalid, "not identical"),
    "lists in a list": ({"containers": named("a")}, {"containers": [[]]}, Invalid, "lists of lists"),
    "a merged list without a key": ({"keyless": [{"a": "1"}]}, {"keyless": [{"a": "2"}]}, Invalid, "without merge key"),
}


@pytest.mark.parametrize(("before", "change", "error", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_strategic_merge_refuses(before: Any, change: Any, error: type[ApiError], words: str) -> None:
    with pytest.raises(error, match=words):
        strategic_merge({"spec": before}, {"spec": change}, POD)


@pytest.mark.parametrize("bad", [None, [], "x"])
def test_a_strategic_merge_patch_must_be_an_object(bad: Any) -> None:
    with pytest.raises(BadRequest):
        strategic_merge({}, bad, POD)


names = st.lists(st.sampled_from("abcdef"), unique=True, max_size=5)


@given(names, names)
def test_the_order_asked_for_is_obeyed_and_nobody_is_lost(live: list[str], order: list[str]) -> None:
    merged = strategic_merge(
        {"spec": {"containers": named(*live)}},
        {"spec": {"$setElementOrder/containers": named(*order), "containers": named(*order)}},
        POD,
    )
    result = [container["name"] for container in merged["spec"]["containers"]]
    assert sorted(result) == sorted({*live, *order})
    assert [name for name in result if name in order] == order
    assert [name for name in result if name not in order] == [name for name in live if name not in order]


words = st.sampled_from(
    ["$patch", "$retainKeys", "$setElementOrder/containers", "containers", "name", "spec", "strategy"]
)
wild = st.recursive(
    st.none() | st.integers(0, 1) | st.sampled_from(["a", "delete", "replace", "merge"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=15,
)


@given(st.dictionaries(words, wild, max_size=3), st.dictionaries(words, wild, max_size=3))
def test_any_patch_gives_an_object_or_an_api_error_and_never_touches_its_input(live: Any, patch: Any) -> None:
    before = copy.deepcopy((live, patch))
    try:
        assert isinstance(strategic_merge({"spec": live}, {"spec": patch}, POD), dict)
    except ApiError:
        pass  # refusing is fine; anything else would escape to the caller
    assert (live, patch) == before
