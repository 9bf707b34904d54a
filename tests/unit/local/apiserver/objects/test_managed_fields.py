"""managedFields after create, update and patch: who owns what, entry by entry."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube.errors import BadRequest, Invalid
from paddlecloud.local.apiserver.objects.fieldset import parse, paths
from paddlecloud.local.apiserver.objects.managed_fields import ANCIENT, MAX_ENTRIES, MAX_UPDATE_MANAGERS, record_update
from unit.local.apiserver.objects.schemas_for_merging import WIDGET, widget


def write(old: Any, new: Any, manager: str = "editor", *, now: float = 0, **more: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"node": WIDGET, "api_version": "v1", **more}
    return record_update(old, new, manager=manager, now=now, **options)


def owned(obj: Any, manager: str = "editor", *, operation: str = "Update", subresource: str = "") -> Any:
    for entry in obj["metadata"].get("managedFields", []):
        if (entry["manager"], entry["operation"], entry.get("subresource", "")) == (manager, operation, subresource):
            return entry["fieldsV1"]
    return None


def edited(obj: Any, **spec: Any) -> Any:
    """What a client sends that read `obj`, changed some of its spec, and took other fields (None) out."""
    changed = {key: value for key, value in {**obj["spec"], **spec}.items() if value is not None}
    return {**copy.deepcopy(obj), "spec": changed}


CREATED: dict[str, tuple[Any, Any]] = {
    "scalars": ({"replicas": 1}, {"f:replicas": {}}),
    "a map and its keys": ({"labels": {"a": "1"}}, {"f:labels": {".": {}, "f:a": {}}}),
    "an empty map": ({"labels": {}}, {"f:labels": {}}),
    "an atomic map is one field": ({"selector": {"a": "1"}}, {"f:selector": {}}),
    "an atomic list is one field": ({"args": ["a", "b"]}, {"f:args": {}}),
    "a set": ({"hosts": ["a", "b"]}, {"f:hosts": {".": {}, 'v:"a"': {}, 'v:"b"': {}}}),
    "elements by their key": (
        {"parts": [{"name": "x", "image": "i"}]},
        {"f:parts": {".": {}, 'k:{"name":"x"}': {".": {}, "f:name": {}, "f:image": {}}}},
    ),
    "two keys, one of them by default": (
        {"parts": [{"name": "x", "ports": [{"port": 80}]}]},
        {
            "f:parts": {
                ".": {},
                'k:{"name":"x"}': {
                    ".": {},
                    "f:name": {},
                    "f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}},
                },
            }
        },
    ),
    "elements that share a key are one field": (
        {"parts": [{"name": "x"}, {"name": "x", "image": "i"}]},
        {"f:parts": {".": {}, 'k:{"name":"x"}': {}}},
    ),
    "elements without their key make the list one field": ({"parts": [{"image": "i"}]}, {"f:parts": {}}),
    "what the schema does not know": (
        {"free": {"a": [1], "b": {"c": 1}}},
        {"f:free": {".": {}, "f:a": {}, "f:b": {".": {}, "f:c": {}}}},
    ),
}


@pytest.mark.parametrize(("spec", "fields"), CREATED.values(), ids=CREATED.keys())
def test_a_creator_owns_everything_it_wrote(spec: Any, fields: Any) -> None:
    new = widget(spec)
    before = copy.deepcopy(new)
    assert owned(write(None, new)) == {"f:spec": fields}
    assert new == before


def test_an_entry_says_who_how_and_when() -> None:
    created = write(None, widget({"replicas": 1}), now=1_700_000_000, subresource="scale")
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "editor",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2023-11-14T22:13:20Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
            "subresource": "scale",
        }
    ]


def test_what_names_the_object_and_what_the_server_writes_is_owned_by_nobody() -> None:
    system = ("namespace", "uid", "resourceVersion", "creationTimestamp", "selfLink", "generation")
    metadata: dict[str, Any] = {
        **dict.fromkeys(system, "x"),
        "labels": {"a": "1"},
        "finalizers": ["f"],
        "generateName": "g-",
    }
    metadata["ownerReferences"] = [{"uid": "u", "name": "n"}]
    assert owned(write(None, widget(metadata=metadata))) == {
        "f:metadata": {
            "f:labels": {".": {}, "f:a": {}},
            "f:finalizers": {".": {}, 'v:"f"': {}},
            "f:generateName": {},
            "f:ownerReferences": {".": {}, 'k:{"uid":"u"}': {}},
        }
    }


def test_an_object_of_nothing_but_its_name_has_no_entries() -> None:
    assert "managedFields" not in write(None, widget())["metadata"]


def test_a_write_without_a_manager_is_by_unknown() -> None:
    assert owned(write(None, widget({"replicas": 1}), ""), "unknown")


# Each row: the spec that "creator" made, the change by "editor", what each then owns of the spec.
UPDATED: dict[str, tuple[Any, Any, Any, Any]] = {
    "a changed field changes hands": (
        {"replicas": 1, "args": ["a"]},
        {"replicas": 2},
        {"f:args": {}},
        {"f:replicas": {}},
    ),
    "a new field": ({"replicas": 1}, {"args": ["a"]}, {"f:replicas": {}}, {"f:args": {}}),
    "a removed field is forgotten": ({"replicas": 1, "args": ["a"]}, {"args": None}, {"f:replicas": {}}, None),
    "one key of a map": (
        {"labels": {"a": "1", "b": "1"}},
        {"labels": {"a": "2", "b": "1", "c": "1"}},
        {"f:labels": {".": {}, "f:b": {}}},
        {"f:labels": {"f:a": {}, "f:c": {}}},
    ),
    "an atomic map changes hands as a whole": (
        {"selector": {"a": "1"}, "replicas": 1},
        {"selector": {"a": "1", "b": "1"}},
        {"f:replicas": {}},
        {"f:selector": {}},
    ),
    "a field of one element": (
        {"parts": [{"name": "x", "image": "1"}, {"name": "y"}]},
        {"parts": [{"name": "x", "image": "2"}, {"name": "y"}]},
        {"f:parts": {".": {}, 'k:{"name":"x"}': {".": {}, "f:name": {}}, 'k:{"name":"y"}': {".": {}, "f:name": {}}}},
        {"f:parts": {'k:{"name":"x"}': {"f:image": {}}}},
    ),
    "an element comes, another goes": (
        {"parts": [{"name": "x"}]},
        {"parts": [{"name": "y"}]},
        {"f:parts": {}},
        {"f:parts": {'k:{"name":"y"}': {".": {}, "f:name": {}}}},
    ),
    "the order of elements belongs to nobody": (
        {"hosts": ["a", "b"]},
        {"hosts": ["b", "a"]},
        {"f:hosts": {".": {}, 'v:"a"': {}, 'v:"b"': {}}},
        None,
    ),
    "a member of a set": (
        {"hosts": ["a", "b"]},
        {"hosts": ["b", "c"]},
        {"f:hosts": {".": {}, 'v:"b"': {}}},
        {"f:hosts": {'v:"c"': {}}},
    ),
    "a value of another type": (
        {"free": {"x": {"y": 1}}, "replicas": 1},
        {"free": {"x": 1}},
        {"f:replicas": {}, "f:free": {}},
        {"f:free": {"f:x": {}}},
    ),
    "everything goes": ({"replicas": 1}, {"replicas": None}, None, None),
}


@pytest.mark.parametrize(("before", "change", "creators", "editors"), UPDATED.values(), ids=UPDATED.keys())
def test_an_update_takes_what_it_changed(before: Any, change: Any, creators: Any, editors: Any) -> None:
    old = write(None, widget(before), "creator")
    new = edited(old, **change)
    untouched = copy.deepcopy((old, new))
    result = write(old, new, now=5)
    assert owned(result, "creator") == (creators and {"f:spec": creators})
    assert owned(result) == (editors and {"f:spec": editors})
    assert (old, new) == untouched


def test_a_manager_that_writes_again_keeps_one_entry_with_the_newer_time() -> None:
    first = write(None, widget({"replicas": 1}), now=0)
    again = write(first, edited(first, args=["a"]), now=60)
    (entry,) = again["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {"f:replicas": {}, "f:args": {}}}
    assert entry["time"] == "1970-01-01T00:01:00Z"


def test_another_version_or_subresource_is_another_entry() -> None:
    obj = write(None, widget({"replicas": 1}))
    obj = write(obj, edited(obj, args=["a"]), api_version="v2", now=1)
    obj = write(obj, {**obj, "status": {"phase": "x"}}, subresource="status", now=2)
    assert len(obj["metadata"]["managedFields"]) == 3
    assert owned(obj, subresource="status") == {"f:status": {"f:phase": {}}}


def test_a_write_that_changes_nothing_changes_no_entry() -> None:
    old = write(None, widget({"replicas": 1}), "creator")
    again = write(old, copy.deepcopy(old), now=99)
    assert again == old


def test_appliers_lose_what_an_update_changes() -> None:
    applied: dict[str, Any] = {"manager": "a", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    applied["fieldsV1"] = {"f:spec": {"f:replicas": {}, "f:args": {}}}
    old = widget({"replicas": 1, "args": ["x"]}, metadata={"managedFields": [applied]})
    result = write(old, edited(old, replicas=2))
    assert owned(result, "a", operation="Apply") == {"f:spec": {"f:args": {}}}
    assert [entry["manager"] for entry in result["metadata"]["managedFields"]] == ["a", "editor"]


def test_clients_that_do_not_send_managed_fields_do_not_lose_them() -> None:
    old = write(None, widget({"replicas": 1}), "creator")
    assert owned(write(old, widget({"replicas": 1})), "creator") == owned(old, "creator")


@pytest.mark.parametrize("reset", [[], [{}]])
def test_a_client_may_stop_the_tracking_which_stays_off_for_updates(reset: Any) -> None:
    old = write(None, widget({"replicas": 1}))
    stopped = write(old, widget({"replicas": 1}, metadata={"managedFields": reset}))
    assert "managedFields" not in stopped["metadata"]
    assert "managedFields" not in write(stopped, edited(stopped, replicas=2))["metadata"]


def test_a_client_may_hand_its_fields_from_update_to_apply() -> None:
    """What kubectl does, by JSON patch, when server-side apply takes over from client-side apply."""
    old = write(None, widget({"replicas": 1}), "kubectl-client-side-apply")
    migrated = [{**old["metadata"]["managedFields"][0], "manager": "kubectl", "operation": "Apply"}]
    result = write(old, widget({"replicas": 1}, metadata={"managedFields": migrated}), "kubectl-edit")
    assert owned(result, "kubectl", operation="Apply") == {"f:spec": {"f:replicas": {}}}
    assert len(result["metadata"]["managedFields"]) == 1


def test_managed_fields_cannot_be_written_through_a_subresource() -> None:
    old = write(None, widget({"replicas": 1}), "creator")
    new = {**widget({"replicas": 1}, metadata={"managedFields": []}), "status": {"phase": "x"}}
    assert owned(write(old, new, subresource="status"), "creator") == owned(old, "creator")


def test_entries_of_one_identity_that_a_client_wrote_are_merged() -> None:
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    given = [{**entry, "fieldsV1": {"f:spec": {f"f:{field}": {}}}} for field in ("replicas", "args")]
    old = widget({"replicas": 1, "args": ["a"]})
    result = write(old, {**old, "metadata": {**old["metadata"], "managedFields": given}})
    assert owned(result, "m") == {"f:spec": {"f:replicas": {}, "f:args": {}}}


BAD_ENTRIES: dict[str, tuple[dict[str, Any], str]] = {
    "operation": (
        {"operation": "Guess"},
        "[0].operation: Invalid value: 'Guess': must be `Apply` or `Update`",
    ),
    "no operation": ({"operation": None}, "managedFields[0].operation"),
    "no version": ({"apiVersion": ""}, "managedFields[0].apiVersion"),
    "no type of fields": ({"fieldsType": ""}, "managedFields[0].fieldsType"),
    "another type of fields": ({"fieldsType": "FieldsV2"}, "'FieldsV2': must be `FieldsV1`"),
    "fields": (
        {"fieldsV1": {"a": {}}},
        "[0].fieldsV1: Invalid value: fieldsV1: 'a' is not a path element",
    ),
    "time": ({"time": "noon"}, "managedFields[0].time"),
    "a number for a manager": ({"manager": 1}, "managedFields[0].manager: Invalid value: must be a string"),
    "a manager that cannot be printed": ({"manager": "a\x00"}, "managedFields[0].manager"),
    "a long manager": ({"manager": "a" * 129}, "managedFields[0].manager"),
    "a long subresource": ({"subresource": "a" * 257}, "managedFields[0].subresource: Too long"),
}


@pytest.mark.parametrize(("change", "words"), BAD_ENTRIES.values(), ids=BAD_ENTRIES.keys())
def test_bad_entries_are_refused_by_name(change: Any, words: str) -> None:
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    with pytest.raises(Invalid) as caught:
        write(widget(), widget(metadata={"managedFields": [{**entry, **change}]}))
    assert words in caught.value.message
    assert caught.value.message.startswith('Widget "w" is invalid: metadata.managedFields[0].')


@pytest.mark.parametrize("bad", [{}, "x", 1, [1], [None]])
def test_managed_fields_must_be_a_list_of_objects(bad: Any) -> None:
    with pytest.raises(BadRequest):
        write(None, widget(metadata={"managedFields": bad}))


def test_the_number_of_entries_a_client_writes_is_bounded() -> None:
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    with pytest.raises(Invalid, match="must have at most"):
        write(None, widget(metadata={"managedFields": [entry] * (MAX_ENTRIES + 1)}))


def test_an_object_that_nests_beyond_reason_is_refused() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(BadRequest, match="too deep"):
        write(None, widget({"free": deep}))


def test_the_oldest_updaters_are_poured_together() -> None:
    obj = write(None, widget({"labels": {"k0": ""}}), "m0")
    for i in range(1, 15):
        obj = write(obj, edited(obj, labels={f"k{j}": "" for j in range(i + 1)}), f"m{i}", now=i)
    managers = [entry["manager"] for entry in obj["metadata"]["managedFields"]]
    assert managers == [ANCIENT, *(f"m{i}" for i in range(6, 15))]
    assert len(managers) == MAX_UPDATE_MANAGERS
    assert owned(obj, ANCIENT) == {"f:spec": {"f:labels": {".": {}, **{f"f:k{i}": {} for i in range(6)}}}}


def test_updaters_of_different_versions_are_not_poured_together() -> None:
    obj = write(None, widget({"labels": {"k0": ""}}), "m", api_version="v0")
    for i in range(1, 12):
        labels = {f"k{j}": "" for j in range(i + 1)}
        obj = write(obj, edited(obj, labels=labels), "m", now=i, api_version=f"v{i}")
    assert len(obj["metadata"]["managedFields"]) == 12


# --- properties -------------------------------------------------------------------------------------------------------

words = st.sampled_from(["a", "b", "c"])
parts = st.lists(
    st.fixed_dictionaries({"name": words}, optional={"image": words, "args": st.lists(words, max_size=2)}),
    max_size=3,
    unique_by=lambda part: part["name"],
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 2),
        "parts": parts,
        "labels": st.dictionaries(words, words, max_size=3),
        "selector": st.dictionaries(words, words, max_size=2),
        "hosts": st.lists(words, max_size=3, unique=True),
        "free": st.dictionaries(words, st.integers(0, 2) | st.dictionaries(words, words, max_size=2), max_size=2),
    },
)
ATOMIC = {"selector", "args"}


def leaves(value: Any, *, name: str = "") -> set[tuple[str, ...]]:
    """The leaf paths of a spec, found by hand rather than by its schema."""
    if isinstance(value, dict) and value and name not in ATOMIC:
        return {(f"f:{key}", *path) for key, inner in value.items() for path in leaves(inner, name=key)}
    if isinstance(value, list) and value and name == "hosts":
        return {(f'v:"{element}"',) for element in value}
    if isinstance(value, list) and value and name == "parts":
        return {(f'k:{{"name":"{part["name"]}"}}', *path) for part in value for path in leaves(part)}
    return {()}


@given(st.lists(st.tuples(st.sampled_from(["m", "n", "o"]), specs), min_size=1, max_size=5))
def test_whatever_is_written_every_leaf_has_exactly_one_updater_and_nothing_else_has(history: Any) -> None:
    obj: Any = None
    for now, (manager, spec) in enumerate(history):
        fresh = widget({"args": ["anchor"], **spec})
        obj = write(obj, fresh, manager, now=now)
    entries = obj["metadata"]["managedFields"]
    claims = [path for entry in entries for path in paths(entry["fieldsV1"])]
    assert len(claims) == len(set(claims))
    there = leaves({"spec": obj["spec"]})
    assert there <= set(claims)
    stems = {path[:i] for path in there for i in range(1, len(path))}
    assert set(claims) <= there | stems
    assert all(parse(entry["fieldsV1"]) == entry["fieldsV1"] for entry in entries)


@given(specs, specs)
def test_only_the_difference_changes_hands(before: Any, after: Any) -> None:
    old = write(None, widget({"args": ["anchor"], **before}), "creator")
    new = write(old, widget({"args": ["anchor"], **after}))
    mine = set(paths(owned(new) or {}))
    shared = leaves({"spec": before}) & leaves({"spec": after})

    def value_at(spec: Any, path: tuple[str, ...]) -> Any:
        at: Any = {"spec": spec}
        for step in path:
            if step.startswith("f:"):
                at = at[step[2:]]
            elif step.startswith("k:"):
                at = next(part for part in at if f'k:{{"name":"{part["name"]}"}}' == step)
        return at

    for path in shared:
        assert (path in mine) == (value_at(before, path) != value_at(after, path) and not path[-1].startswith("v:"))
