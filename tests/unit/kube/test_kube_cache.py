"""The cache against its specification: the newest state of each object wins, and indexes say what objects say."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.kube.cache import Cache, by_field, by_label, by_owner, owned_by
from paddlecloud.kube.resource import Key, Object

INDEXERS = {"owner": by_owner, "app": by_label("app"), "node": by_field("spec.nodeName")}


def pod(
    name: str, version: int, *, owner: str | None = None, app: str | None = None, node: str | None = None
) -> Object:
    meta: dict[str, Any] = {"namespace": "ns", "name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    if owner:
        meta["ownerReferences"] = [{"kind": "Job", "name": owner, "uid": owner, "controller": True}]
    if app:
        meta["labels"] = {"app": app}
    return {"metadata": meta, "spec": {"nodeName": node} if node else {}}


def names(objects: list[Object]) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in objects)


def test_objects_are_found_by_key_namespace_and_index() -> None:
    cache = Cache(INDEXERS)
    cache.upsert(pod("a", 1, owner="job", app="x", node="n1"))
    cache.upsert(pod("b", 2, app="x"))
    assert names(cache.list("ns")) == ["a", "b"]
    assert cache.list("other") == []
    assert Key("ns", "a") in cache
    assert len(cache) == 2
    assert names(cache.by_index("app", "x")) == ["a", "b"]
    assert names(cache.by_index("owner", "ns/job")) == ["a"]
    assert names(cache.by_index("node", "n1")) == ["a"]
    assert cache.by_index("node", "nowhere") == []
    with pytest.raises(KeyError):
        cache.by_index("unheard of", "x")


def test_an_index_added_late_knows_what_is_cached() -> None:
    cache = Cache()
    cache.upsert(pod("a", 1, owner="job"))
    cache.add_index("owner", by_owner)
    cache.add_index("owner", by_owner)  # the same again is no error: informers are shared
    assert names(cache.by_index("owner", "ns/job")) == ["a"]
    with pytest.raises(ValueError, match="another indexer"):
        cache.add_index("owner", by_label("owner"))


def test_an_object_that_an_indexer_cannot_read_costs_the_others_nothing() -> None:
    """Pod templates of custom kinds have no schema: a label of an object without metadata.labels, a claim that is a
    text, a name that is a mapping."""

    def unreadable(obj: Object) -> list[str]:
        return [{obj["spec"]["nodeName"]["name"]: None}] if obj["spec"] else []  # type: ignore[list-item]

    cache = Cache({"app": by_label("app"), "odd": unreadable})
    odd = [pod("a", version, app="x", node="n") for version in (1, 2)]
    cache.upsert(odd[0])
    assert names(cache.by_index("app", "x")) == ["a"]
    changes = cache.replace([odd[1], pod("b", 3, app="x")], "3")
    assert names([change.new for change in changes if change.new]) == ["a", "b"]
    assert names(cache.by_index("app", "x")) == ["a", "b"]
    cache.remove(pod("a", 4, node="n"))
    assert names(cache.by_index("app", "x")) == ["b"]
    cache.add_index("late", unreadable)
    assert cache.values("late") == []


def test_an_owner_has_nothing_of_another_namespace() -> None:
    """Everybody writes owner references in their own namespace, with whatever uid."""
    cache = Cache(INDEXERS)
    cache.upsert(pod("own", 1, owner="job"))
    forged = pod("forged", 2, owner="job")
    forged["metadata"]["namespace"] = "elsewhere"
    cache.upsert(forged)
    owner = {"metadata": {"namespace": "ns", "name": "job", "uid": "job"}}
    assert names(cache.by_index("owner", owned_by(owner))) == ["own"]


def test_old_and_repeated_events_change_nothing() -> None:
    cache = Cache()
    assert cache.upsert(pod("a", 5)) is not None
    assert cache.upsert(pod("a", 5)) is None
    assert cache.upsert(pod("a", 4)) is None
    assert cache.remove(pod("a", 4)) is None
    assert cache.remove(pod("a", 6)) is not None
    assert cache.upsert(pod("a", 5)) is None, "a deleted object came back from the dead"
    assert cache.upsert(pod("a", 7)) is not None, "a new object of the same name was taken for the dead one"


def test_a_list_shows_what_was_missed_and_is_the_truth() -> None:
    cache = Cache()
    for obj in (pod("same", 1), pod("changed", 2), pod("gone", 3)):
        cache.upsert(obj)
    changes = cache.replace([pod("same", 1), pod("changed", 8), pod("new", 9)], "10")
    reported = {(c.old and c.old["metadata"]["name"], c.new and c.new["metadata"]["resourceVersion"]) for c in changes}
    assert reported == {("gone", None), ("changed", "8"), (None, "9")}
    assert cache.upsert(pod("gone", 4)) is None, "news older than the list"
    assert [c.new for c in cache.replace([pod("same", 1)], "2")] == [None, None], "a server restored from a backup"


def test_versions_that_are_not_numbers_are_believed_in_order_of_arrival() -> None:
    cache = Cache()
    first, second = pod("a", 1), pod("a", 1)
    first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"] = "x9", "x10"
    assert cache.upsert(first) is not None
    assert cache.upsert(second) is not None
    assert cache.remove(second) is not None


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["put", "put", "delete"]),
        st.sampled_from([None, "o1", "o2"]),
        st.sampled_from([None, "x", "y"]),
    ),
    max_size=25,
)


@settings(max_examples=200, deadline=None)
@given(events=EVENTS, seed=st.randoms(use_true_random=False))
def test_any_order_and_repetition_of_events_leads_to_the_same_end(
    events: list[tuple[str, str, str | None, str | None]], seed: random.Random
) -> None:
    history: list[tuple[str, Object]] = []
    end: dict[str, Object] = {}
    for version, (name, verb, owner, app) in enumerate(events, start=1):
        obj = pod(name, version, owner=owner, app=app)
        history.append((verb, obj))
        if verb == "put":
            end[name] = obj
        else:
            end.pop(name, None)
    delivered = history + [seed.choice(history) for _ in range(len(history) // 2)]
    seed.shuffle(delivered)

    cache = Cache(INDEXERS)
    reported: dict[str, Object] = {}  # what a reader of the changes alone would have
    for verb, obj in delivered:
        before = cache.get(Key("ns", obj["metadata"]["name"]))
        change = cache.upsert(obj) if verb == "put" else cache.remove(obj)
        if change is not None:
            assert change.old is before
            if change.old is not None and change.new is not None:
                old, new = (int(o["metadata"]["resourceVersion"]) for o in (change.old, change.new))
                assert new > old, "went backwards"
            name = obj["metadata"]["name"]
            if change.new is None:
                del reported[name]
            else:
                reported[name] = change.new
        assert_indexes_agree(cache)
    assert {k.name: cache.get(k) for k in cache} == end == reported


def assert_indexes_agree(cache: Cache) -> None:
    for index, indexer in INDEXERS.items():
        expected: dict[str, set[str]] = {}
        for obj in cache.list():
            for value in indexer(obj):
                expected.setdefault(value, set()).add(obj["metadata"]["name"])
        actual = {value: set(names(cache.by_index(index, value))) for value in cache.values(index)}
        assert actual == expected


@settings(max_examples=100, deadline=None)
@given(first=EVENTS, second=EVENTS)
def test_a_list_replaces_everything_and_its_changes_are_the_difference(
    first: list[tuple[str, str, str | None, str | None]], second: list[tuple[str, str, str | None, str | None]]
) -> None:
    cache = Cache(INDEXERS)
    for version, (name, verb, owner, app) in enumerate(first, start=1):
        obj = pod(name, version, owner=owner, app=app)
        cache.upsert(obj) if verb == "put" else cache.remove(obj)
    reported = {key: cache.get(key) for key in cache}
    listed = {name: pod(name, 100 + v, owner=owner, app=app) for v, (name, _, owner, app) in enumerate(second)}
    for change in cache.replace(listed.values(), "200"):
        some = change.new or change.old
        assert some is not None
        key = Key("ns", some["metadata"]["name"])
        assert reported.get(key) is change.old
        if change.new is None:
            del reported[key]
        else:
            reported[key] = change.new
    assert reported == {Key("ns", name): obj for name, obj in listed.items()} == {key: cache.get(key) for key in cache}
    assert_indexes_agree(cache)
