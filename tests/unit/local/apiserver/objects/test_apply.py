"""Server-side apply: the documented scenarios of Kubernetes, then properties over random histories."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube.errors import ApiError, BadRequest, Conflict
from paddlecloud.local.apiserver.builtin.kinds import builtin_kinds
from paddlecloud.local.apiserver.objects.apply import LAST_APPLIED, apply
from paddlecloud.local.apiserver.objects.managed_fields import record_update
from paddlecloud.local.apiserver.schema.structural import Node
from unit.local.apiserver.objects.schemas_for_merging import WIDGET, widget


def put(live: Any, applied: Any, manager: str = "a", *, force: bool = False, now: float = 0, **more: Any) -> Any:
    options: dict[str, Any] = {"node": WIDGET, "api_version": "v1", **more}
    return apply(live, applied, manager=manager, force=force, now=now, **options)


def edit(live: Any, spec: Any, manager: str = "editor", *, now: float = 0) -> Any:
    """A plain update by another client, in the middle of a life of applies."""
    new = {**live, "spec": spec} if live is not None else widget(spec)
    return record_update(live, new, manager=manager, now=now, node=WIDGET, api_version="v1")


def owners(obj: Any) -> dict[str, Any]:
    """What each manager owns of the spec; updaters are marked by an asterisk."""
    return {
        entry["manager"] + ("*" if entry["operation"] == "Update" else ""): entry["fieldsV1"].get("f:spec")
        for entry in obj["metadata"].get("managedFields", [])
    }


# --- what an applier owns ---------------------------------------------------------------------------------------------

OWNED: dict[str, tuple[Any, Any]] = {
    "a leaf, but not the record around it": ({"policy": {"kind": "x"}}, {"f:policy": {"f:kind": {}}}),
    "the keys of a map, but not the map": ({"labels": {"a": "1"}}, {"f:labels": {"f:a": {}}}),
    "an empty map": ({"labels": {}}, {"f:labels": {}}),
    "an atomic map": ({"selector": {"a": "1"}}, {"f:selector": {}}),
    "an atomic list": ({"args": []}, {"f:args": {}}),
    "the members of a set": ({"hosts": ["a"]}, {"f:hosts": {'v:"a"': {}}}),
    "nothing of an empty set": ({"hosts": [], "replicas": 1}, {"f:replicas": {}}),
    "elements and their fields": (
        {"parts": [{"name": "x", "ports": [{"port": 80}]}]},
        {
            "f:parts": {
                'k:{"name":"x"}': {
                    ".": {},
                    "f:name": {},
                    "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}},
                }
            }
        },
    ),
    "fields that are unset on purpose": ({"replicas": None}, {"f:replicas": {}}),
    "what the schema does not know": (
        {"free": {"a": {"b": [1]}}},
        {"f:free": {"f:a": {".": {}, "f:b": {}}}},
    ),
}


@pytest.mark.parametrize(("spec", "fields"), OWNED.values(), ids=OWNED.keys())
def test_an_applier_owns(spec: Any, fields: Any) -> None:
    applied = widget(spec)
    before = copy.deepcopy(applied)
    assert owners(put(None, applied)) == {"a": fields}
    assert applied == before


def test_the_entry_says_apply_and_when() -> None:
    (entry,) = put(None, widget({"replicas": 1}), now=1_700_000_000, subresource="status")["metadata"]["managedFields"]
    assert {key: value for key, value in entry.items() if key != "fieldsV1"} == {
        "manager": "a",
        "operation": "Apply",
        "apiVersion": "v1",
        "time": "2023-11-14T22:13:20Z",
        "fieldsType": "FieldsV1",
        "subresource": "status",
    }


def test_metadata_of_kinds_whose_schema_does_not_declare_it_merges_as_everywhere() -> None:
    live = put(None, widget(metadata={"finalizers": ["a"], "labels": {"x": "1"}}), "a")
    both = put(live, widget(metadata={"finalizers": ["b"], "labels": {"y": "1"}}), "b")
    assert both["metadata"]["finalizers"] == ["a", "b"]
    assert both["metadata"]["labels"] == {"x": "1", "y": "1"}


def test_null_where_it_is_no_value_unsets_and_elsewhere_it_is_kept() -> None:
    live = put(None, widget({"replicas": 1, "maybe": "x"}))
    unset = put(live, widget({"replicas": None, "maybe": None, "parts": [{"name": "x", "image": None}]}))
    assert unset["spec"] == {"maybe": None, "parts": [{"name": "x"}]}


def test_a_generated_manifest_does_not_wipe_what_the_server_wrote() -> None:
    live = put(None, widget({"replicas": 1}))
    live["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    again = put(live, widget({"replicas": 2}, metadata={"creationTimestamp": None}))
    assert again["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


# --- merging ----------------------------------------------------------------------------------------------------------

# Each row: what "editor" had written, what "a" applies by force, the spec after.
MERGED: dict[str, tuple[Any, Any, Any]] = {
    "fields join": ({"replicas": 1}, {"policy": {"kind": "x"}}, {"replicas": 1, "policy": {"kind": "x"}}),
    "keys join": ({"labels": {"x": "1"}}, {"labels": {"y": "1"}}, {"labels": {"x": "1", "y": "1"}}),
    "an atomic map is replaced": ({"selector": {"x": "1"}}, {"selector": {"y": "1"}}, {"selector": {"y": "1"}}),
    "an atomic list is replaced": ({"args": ["x"]}, {"args": ["y"]}, {"args": ["y"]}),
    "a set joins": ({"hosts": ["x", "y"]}, {"hosts": ["z", "x"]}, {"hosts": ["z", "x", "y"]}),
    "elements merge by key": (
        {"parts": [{"name": "x", "image": "1", "args": ["p"]}]},
        {"parts": [{"name": "x", "image": "2"}]},
        {"parts": [{"name": "x", "image": "2", "args": ["p"]}]},
    ),
    "a new element goes where it is applied": (
        {"parts": [{"name": "x"}, {"name": "y"}]},
        {"parts": [{"name": "new"}, {"name": "y"}]},
        {"parts": [{"name": "x"}, {"name": "new"}, {"name": "y"}]},
    ),
    "the order applied wins": (
        {"parts": [{"name": "x"}, {"name": "mine"}, {"name": "y"}]},
        {"parts": [{"name": "y"}, {"name": "x"}]},
        {"parts": [{"name": "mine"}, {"name": "y"}, {"name": "x"}]},
    ),
    "a key left out is its default": (
        {"parts": [{"name": "x", "ports": [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}]}]},
        {"parts": [{"name": "x", "ports": [{"port": 80, "name": "web"}]}]},
        {
            "parts": [
                {
                    "name": "x",
                    "ports": [{"port": 80, "protocol": "TCP", "name": "web"}, {"port": 80, "protocol": "UDP"}],
                }
            ]
        },
    ),
    "twins that share a key are replaced by the one applied": (
        {"parts": [{"name": "x", "image": "1"}, {"name": "x", "image": "2"}, {"name": "y"}]},
        {"parts": [{"name": "x", "args": ["p"]}]},
        {"parts": [{"name": "x", "args": ["p"]}, {"name": "y"}]},
    ),
    "another type replaces": ({"free": {"x": {"y": 1}}}, {"free": {"x": 1}}, {"free": {"x": 1}}),
}


@pytest.mark.parametrize(("before", "applied", "after"), MERGED.values(), ids=MERGED.keys())
def test_apply_merges(before: Any, applied: Any, after: Any) -> None:
    live = edit(None, before)
    untouched = copy.deepcopy(live)
    assert put(live, widget(applied), force=True)["spec"] == after
    assert live == untouched


# --- leaving fields out -----------------------------------------------------------------------------------------------

# Each row: what "a" applied, what "editor" made of it, what "a" applies now, the spec after.
PRUNED: dict[str, tuple[Any, Any, Any, Any]] = {
    "a field goes": ({"replicas": 1, "args": ["x"]}, None, {"replicas": 1}, {"replicas": 1}),
    "a field that another changed stays": (
        {"replicas": 1, "args": ["x"]},
        {"replicas": 1, "args": ["y"]},
        {"replicas": 1},
        {"replicas": 1, "args": ["y"]},
    ),
    "a key goes, those of others stay": (
        {"labels": {"x": "1"}, "replicas": 1},
        {"labels": {"x": "1", "y": "1"}, "replicas": 1},
        {"replicas": 1},
        {"labels": {"y": "1"}, "replicas": 1},
    ),
    "the last key takes the map with it": (
        {"labels": {"x": "1"}, "replicas": 1},
        None,
        {"replicas": 1},
        {"replicas": 1},
    ),
    "an element goes": (
        {"parts": [{"name": "x"}, {"name": "y"}]},
        None,
        {"parts": [{"name": "y"}]},
        {"parts": [{"name": "y"}]},
    ),
    "an element goes with what the server filled in": (
        {"parts": [{"name": "x"}, {"name": "y"}]},
        "default the image of x, owned by nobody",
        {"parts": [{"name": "y"}]},
        {"parts": [{"name": "y"}]},
    ),
    "a field of an element goes": (
        {"parts": [{"name": "x", "image": "1", "args": ["p"]}]},
        None,
        {"parts": [{"name": "x", "image": "1"}]},
        {"parts": [{"name": "x", "image": "1"}]},
    ),
    "a member of a set goes": ({"hosts": ["x", "y"]}, None, {"hosts": ["y"]}, {"hosts": ["y"]}),
    "a record goes with its last field": (
        {"policy": {"kind": "x"}, "replicas": 1},
        None,
        {"replicas": 1},
        {"replicas": 1},
    ),
    "a record stays for the field of another": (
        {"policy": {"kind": "x"}, "replicas": 1},
        {"policy": {"kind": "x", "limit": 3}, "replicas": 1},
        {"replicas": 1},
        {"policy": {"limit": 3}, "replicas": 1},
    ),
}


@pytest.mark.parametrize(("first", "between", "second", "after"), PRUNED.values(), ids=PRUNED.keys())
def test_what_is_no_longer_applied(first: Any, between: Any, second: Any, after: Any) -> None:
    live = put(None, widget(first))
    if isinstance(between, str):
        live["spec"]["parts"][0]["image"] = "default"
    elif between is not None:
        live = edit(live, between)
    assert put(live, widget(second))["spec"] == after


def test_a_field_of_two_appliers_stays_until_both_have_left_it_out() -> None:
    live = put(None, widget({"replicas": 1, "args": ["x"]}), "a")
    live = put(live, widget({"args": ["x"]}), "b")
    live = put(live, widget({"replicas": 1}), "a")
    assert live["spec"] == {"replicas": 1, "args": ["x"]}
    assert owners(live) == {"a": {"f:replicas": {}}, "b": {"f:args": {}}}
    live = put(live, widget(), "b")
    assert live["spec"] == {"replicas": 1}
    assert owners(live) == {"a": {"f:replicas": {}}}


def test_a_map_that_another_manager_made_stays_when_its_keys_go() -> None:
    live = edit(None, {"labels": {}, "replicas": 1})
    live = put(live, widget({"labels": {"x": "1"}}))
    assert put(live, widget())["spec"] == {"labels": {}, "replicas": 1}


def test_applying_nothing_gives_everything_up_but_the_object() -> None:
    live = put(None, widget({"replicas": 1}, metadata={"labels": {"x": "1"}}))
    assert put(live, widget()) == widget()


# --- conflicts --------------------------------------------------------------------------------------------------------


def test_a_conflict_is_reported_in_the_words_of_kubectl() -> None:
    live = record_update(
        None,
        widget(data={"key": "old"}),
        manager="kubectl-client-side-apply",
        now=0,
        node=WIDGET,
        api_version="v1",
    )
    with pytest.raises(Conflict) as caught:
        put(live, widget(data={"key": "new"}))
    assert caught.value.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.key'
    )
    assert caught.value.details == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "kubectl-client-side-apply" using v1',
                "field": ".data.key",
            }
        ]
    }


def test_several_conflicts_are_listed_by_manager() -> None:
    live = put(None, widget({"replicas": 1, "parts": [{"name": "x", "image": "1"}]}), "other")
    live = edit(live, {**live["spec"], "args": ["x"]})
    with pytest.raises(Conflict) as caught:
        put(live, widget({"replicas": 2, "parts": [{"name": "x", "image": "2"}], "args": ["y"]}))
    assert caught.value.message == (
        "Apply failed with 3 conflicts: "
        'conflicts with "other":\n- .spec.replicas\n- .spec.parts[name="x"].image\n'
        'conflicts with "editor" using v1:\n- .spec.args'
    )


def test_a_subresource_is_named_in_the_conflict() -> None:
    live = put(None, widget({"replicas": 1}), "scaler", subresource="scale")
    with pytest.raises(Conflict, match=r'conflict with "scaler" with subresource "scale": \.spec\.replicas'):
        put(live, widget({"replicas": 2}))


def test_the_same_value_is_no_conflict_but_shared() -> None:
    live = put(put(None, widget({"replicas": 1}), "a"), widget({"replicas": 1}), "b")
    assert owners(live) == {"a": {"f:replicas": {}}, "b": {"f:replicas": {}}}


def test_force_takes_the_field() -> None:
    live = put(None, widget({"replicas": 1, "args": ["x"]}), "a")
    live = put(live, widget({"replicas": 2}), "b", force=True)
    assert live["spec"] == {"replicas": 2, "args": ["x"]}
    assert owners(live) == {"a": {"f:args": {}}, "b": {"f:replicas": {}}}


def test_leaving_a_field_out_settles_a_conflict() -> None:
    live = put(None, widget({"replicas": 1, "args": ["x"]}), "a")
    live = edit(live, {"replicas": 5, "args": ["x"]}, "autoscaler")
    with pytest.raises(Conflict, match="autoscaler"):
        put(live, widget({"replicas": 1, "args": ["x"]}), "a")
    live = put(live, widget({"args": ["x"]}), "a")
    assert live["spec"] == {"replicas": 5, "args": ["x"]}


# --- doing nothing ----------------------------------------------------------------------------------------------------


def test_applying_the_same_again_changes_nothing_at_all() -> None:
    applied = widget({"replicas": 1, "parts": [{"name": "x"}], "hosts": ["b", "a"]}, metadata={"labels": {"x": "1"}})
    live = put(None, applied, now=0)
    assert put(live, applied, now=99) == live


def test_a_change_of_what_is_owned_alone_is_recorded() -> None:
    live = put(None, widget({"replicas": 1}), "a", now=0)
    live = edit(live, {"replicas": 1, "args": ["x"]})
    shared = put(live, widget({"replicas": 1, "args": ["x"]}), "a", now=60)
    assert shared["spec"] == live["spec"]
    assert shared["metadata"]["managedFields"][0]["time"] == "1970-01-01T00:01:00Z"


def test_what_was_there_before_the_first_apply_has_an_owner() -> None:
    live = widget({"replicas": 1, "args": ["x"]}, metadata={"uid": "u"})
    with pytest.raises(Conflict, match=r'conflict with "before-first-apply" using v1: \.spec\.replicas'):
        put(live, widget({"replicas": 2}))
    taken = put(live, widget({"replicas": 2}), force=True)
    assert owners(taken) == {"a": {"f:replicas": {}}, "before-first-apply*": {"f:args": {}}}


# --- kubectl's way from client-side to server-side apply --------------------------------------------------------------


def client_side(spec: Any) -> Any:
    text = json.dumps(widget(spec))
    obj = widget(spec, metadata={"annotations": {LAST_APPLIED: text}})
    return record_update(None, obj, manager="kubectl-client-side-apply", now=0, node=WIDGET, api_version="v1")


def test_kubectl_takes_over_what_it_applied_client_side_without_conflict() -> None:
    live = put(client_side({"replicas": 1, "args": ["x"]}), widget({"replicas": 2, "args": ["x"]}), "kubectl")
    assert live["spec"]["replicas"] == 2
    assert json.loads(live["metadata"]["annotations"][LAST_APPLIED]) == widget({"replicas": 2, "args": ["x"]})


def test_kubectl_does_not_take_over_what_somebody_changed_since() -> None:
    live = client_side({"replicas": 1})
    live = edit(live, {"replicas": 5}, "autoscaler")
    with pytest.raises(Conflict, match="autoscaler"):
        put(live, widget({"replicas": 2}), "kubectl")


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, '{"apiVersion":"v0"}', ""])
def test_an_annotation_that_does_not_help_allows_nothing(text: str) -> None:
    live = client_side({"replicas": 1})
    live["metadata"]["annotations"][LAST_APPLIED] = text
    with pytest.raises(Conflict):
        put(live, widget({"replicas": 2}), "kubectl")


def test_the_annotation_is_dropped_when_it_grows_out_of_bounds() -> None:
    live = client_side({"args": ["x"]})
    grown = put(live, widget({"args": ["y" * 300_000]}), "kubectl")
    assert LAST_APPLIED not in grown["metadata"]["annotations"]


def test_other_appliers_leave_the_annotation_alone() -> None:
    live = client_side({"replicas": 1})
    assert put(live, widget({"args": ["x"]}), "argo")["metadata"]["annotations"] == live["metadata"]["annotations"]


# --- bad input --------------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Any, str]] = {
    "managed fields": (widget(metadata={"managedFields": []}), "metadata.managedFields must be nil"),
    "another version": ({**widget(), "apiVersion": "v2"}, "Specified patch version: v2, expected: v1"),
    "metadata of another type": ({"metadata": "x"}, "metadata must be an object"),
    "twins": (
        widget({"parts": [{"name": "x"}, {"name": "x"}]}),
        '(/w; v1, Kind=Widget): .spec.parts: duplicate entries for key [name="x"]',
    ),
    "twins deep down": (
        widget({"parts": [{"name": "x", "ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}]}),
        '.spec.parts[name="x"].ports: duplicate entries for key [port=1,protocol="TCP"]',
    ),
    "twins in a set": (widget({"hosts": ["x", "x"]}), '.spec.hosts: duplicate entries for key [="x"]'),
    "an element without its key": (widget({"parts": [{"image": "x"}]}), ".spec.parts: an element omits all key fields"),
    "an element that is no object": (widget({"parts": ["x"]}), ".spec.parts: a list with keys may only have objects"),
    "a structure for a key": (widget({"parts": [{"name": {}}]}), ".spec.parts: the key field name must be a scalar"),
    "a structure in a set": (widget({"hosts": [{}]}), ".spec.hosts: a list used as a set may only have scalar"),
}


@pytest.mark.parametrize(("applied", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_apply_refuses(applied: Any, words: str) -> None:
    with pytest.raises(BadRequest) as caught:
        put(None, applied)
    assert words in caught.value.message


# --- built-in kinds ---------------------------------------------------------------------------------------------------


def test_a_deployment_is_owned_as_on_a_cluster() -> None:
    info = next(kind for kind in builtin_kinds() if kind.kind == "Deployment")
    container = {"name": "c", "image": "nginx", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}]}
    applied = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }
    node = Node(info.schema or {}, info.definitions)
    live = put(None, applied, node=node, api_version="apps/v1")
    assert live["metadata"]["managedFields"][0]["fieldsV1"] == {
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"c"}': {
                            ".": {},
                            "f:name": {},
                            "f:image": {},
                            "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
                            "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                        }
                    }
                },
            },
        },
    }


# --- properties -------------------------------------------------------------------------------------------------------

words = st.sampled_from(["x", "y", "z"])
parts = st.lists(
    st.fixed_dictionaries({"name": words}, optional={"image": words, "args": st.lists(words, max_size=2)}),
    max_size=3,
    unique_by=lambda part: part["name"],
)
fields: dict[str, st.SearchStrategy[Any]] = {
    "replicas": st.integers(0, 2),
    "parts": parts,
    "labels": st.dictionaries(words, words, max_size=3),
    "selector": st.dictionaries(words, words, max_size=2),
    "hosts": st.lists(words, max_size=3, unique=True),
    "policy": st.fixed_dictionaries({}, optional={"kind": words, "limit": st.integers(0, 2)}),
}
specs = st.fixed_dictionaries({}, optional=fields)
steps = st.tuples(st.sampled_from(["apply", "force", "edit"]), st.sampled_from(["a", "b"]), specs)


def live_through(history: Any) -> Any:
    live = None
    for now, (verb, manager, spec) in enumerate(history):
        try:
            live = (
                edit(live, spec, manager, now=now)
                if verb == "edit"
                else put(live, widget(spec), manager, force=verb == "force", now=now)
            )
        except Conflict:
            continue
    return live


@given(st.lists(steps, max_size=5), specs)
def test_applying_twice_is_applying_once(history: Any, spec: Any) -> None:
    live = live_through(history)
    before = copy.deepcopy(live)
    once = put(live, widget(spec), "c", force=True, now=10)
    assert put(once, widget(spec), "c", now=20) == once
    assert live == before


@given(st.lists(steps, max_size=5), specs)
def test_what_is_applied_by_force_is_there(history: Any, spec: Any) -> None:
    def contains(whole: Any, part: Any, name: str = "") -> bool:
        if isinstance(part, dict) and name != "selector":
            return all(key in whole and contains(whole[key], value, key) for key, value in part.items())
        if name == "parts":
            by_name = {element["name"]: element for element in whole}
            return all(contains(by_name[element["name"]], element) for element in part)
        return set(part) <= set(whole) if name == "hosts" else bool(whole == part)

    result = put(live_through(history), widget(spec), "c", force=True, now=10)
    assert contains(result["spec"] if spec else {}, spec)


@given(st.lists(steps, max_size=4), specs)
def test_applying_and_applying_nothing_leaves_no_trace_of_the_manager(history: Any, spec: Any) -> None:
    live = live_through(history)
    applied = put(live, widget(spec), "c", force=True, now=10)
    gone = put(applied, widget(), "c", now=20)
    assert "c" not in owners(gone)


@given(specs, specs)
def test_managers_of_disjoint_fields_never_conflict_and_both_get_their_way(one: Any, two: Any) -> None:
    one = {key: value for key, value in one.items() if value != []}  # nobody owns an empty list that merges
    two = {key: value for key, value in two.items() if value != [] and key not in one}
    live = put(put(None, widget(one), "a"), widget(two), "b")
    live = put(put(live, widget(one), "a"), widget(two), "b")
    assert live["spec"] == {**one, **two}
    assert put(live, widget(), "b").get("spec", {}) == one


wild = st.recursive(
    st.none() | st.integers(0, 1) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*fields, "name"]), inner, max_size=3),
    max_leaves=12,
)


@given(wild, wild)
def test_any_object_is_applied_or_refused_and_never_touched(before: Any, spec: Any) -> None:
    live, applied = widget(before), widget(spec)
    untouched = copy.deepcopy((live, applied))
    try:
        result = put(live, applied, force=True)
        assert put(result, applied) == result
    except ApiError:
        pass  # refusing is fine; anything else would escape to the caller
    assert (live, applied) == untouched
