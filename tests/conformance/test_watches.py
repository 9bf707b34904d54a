"""Watches: nothing missed, nothing twice, only what was asked for."""

from __future__ import annotations

from itertools import islice

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.client import WatchEvent
from paddlecloud.kube.resource import CONFIGMAPS, SECRETS, Resource

from .world import Api, ScratchNamespace


def reported(event: WatchEvent) -> tuple[str, str]:
    return event.type, event.object["metadata"]["name"]


def test_a_watch_shows_every_change_after_its_version_in_order(here: ScratchNamespace) -> None:
    here.make(SECRETS, "before")
    since = here.version(SECRETS)
    here.make(SECRETS, "a")
    here.patch(SECRETS, "a", {"metadata": {"labels": {"x": "1"}}})
    here.make(SECRETS, "b")
    here.delete(SECRETS, "a")
    events = list(islice(here.watch(SECRETS, resource_version=since), 4))
    assert [reported(event) for event in events] == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("ADDED", "b"),
        ("DELETED", "a"),
    ]
    versions = [int(event.object["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


def test_a_watch_resumes_at_any_version_it_was_given(here: ScratchNamespace) -> None:
    since = here.version(SECRETS)
    for name in ("a", "b", "c"):
        here.make(SECRETS, name)
    first = next(here.watch(SECRETS, resource_version=since))
    resumed = here.watch(SECRETS, resource_version=first.object["metadata"]["resourceVersion"])
    assert [reported(event) for event in islice(resumed, 2)] == [("ADDED", "b"), ("ADDED", "c")]


def test_a_watch_without_version_begins_with_what_is_there(here: ScratchNamespace) -> None:
    here.make(SECRETS, "a")
    here.make(SECRETS, "b")
    found = {reported(event) for event in islice(here.watch(SECRETS), 2)}
    assert found == {("ADDED", "a"), ("ADDED", "b")}


def test_the_deleted_event_shows_the_last_state_and_a_new_version(here: ScratchNamespace) -> None:
    made = here.make(SECRETS, "a", labels={"last": "seen"})
    here.delete(SECRETS, "a")
    (event,) = islice(here.watch(SECRETS, resource_version=made["metadata"]["resourceVersion"]), 1)
    assert event.type == "DELETED"
    assert event.object["metadata"]["labels"] == {"last": "seen"}
    assert int(event.object["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


def test_entering_a_selection_is_an_addition_and_leaving_it_a_deletion(here: ScratchNamespace) -> None:
    since = here.version(SECRETS)
    here.make(SECRETS, "a")
    here.make(SECRETS, "other", labels={"pick": "no"})
    here.patch(SECRETS, "a", {"metadata": {"labels": {"pick": "me"}}})
    here.patch(SECRETS, "a", {"metadata": {"annotations": {"still": "in"}}})
    here.patch(SECRETS, "a", {"metadata": {"labels": {"pick": "no"}}})
    events = islice(here.watch(SECRETS, resource_version=since, label_selector="pick=me"), 3)
    assert [reported(event) for event in events] == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_one_object_is_watched_by_its_name(here: ScratchNamespace) -> None:
    since = here.version(SECRETS)
    for name in ("a", "b", "c"):
        here.make(SECRETS, name)
    (event,) = islice(here.watch(SECRETS, resource_version=since, field_selector="metadata.name=b"), 1)
    assert reported(event) == ("ADDED", "b")


def test_a_watch_of_one_namespace_receives_nothing_of_others(here: ScratchNamespace, api: Api) -> None:
    since = here.version(CONFIGMAPS)
    api.send("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"x-{here.namespace}"}})
    try:
        here.make(CONFIGMAPS, "mine")
        (event,) = islice(here.watch(CONFIGMAPS, resource_version=since, field_selector="metadata.name!=x"), 1)
        assert event.object["metadata"]["namespace"] == here.namespace
    finally:
        api.send("DELETE", f"/api/v1/namespaces/default/configmaps/x-{here.namespace}")


def test_all_namespaces_are_watched_at_once(here: ScratchNamespace, api: Api) -> None:
    since = here.version(SECRETS)
    here.make(SECRETS, "a", labels={"run": here.namespace})
    selector = f"run={here.namespace}"
    (event,) = islice(api.watch(SECRETS, resource_version=since, label_selector=selector), 1)
    assert reported(event) == ("ADDED", "a")


def test_custom_kinds_are_watched_alike(here: ScratchNamespace, widgets: Resource) -> None:
    since = here.version(widgets)
    here.make(widgets, "w")
    here.patch(widgets, "w", {"status": {"phase": "Up"}}, subresource="status")
    events = islice(here.watch(widgets, resource_version=since), 2)
    assert [event.object.get("status") for event in events] == [None, {"phase": "Up"}]


def test_a_watch_ends_when_its_time_is_up(here: ScratchNamespace) -> None:
    here.make(SECRETS, "a")
    assert [event.type for event in here.watch(SECRETS, timeout=1, bookmarks=False)] == ["ADDED"]


def test_initial_events_end_with_a_bookmark(here: ScratchNamespace) -> None:
    """The way of informers that ask for a streaming list."""
    from paddlecloud.kube.stdlib import drive_iter
    from paddlecloud.kube.transport import split_lines

    here.make(SECRETS, "a")
    query = {
        "watch": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "10",
    }
    lines = drive_iter(split_lines(here.api.client.stream(here.path(SECRETS), query=query)))
    import msgspec

    first, second = (msgspec.json.decode(line) for line in islice(lines, 2))
    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert second["type"] == "BOOKMARK"
    assert second["object"]["kind"] == "Secret"
    assert second["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(second["object"]["metadata"]["resourceVersion"]) >= int(first["object"]["metadata"]["resourceVersion"])


def test_initial_events_must_be_asked_for_properly(here: ScratchNamespace) -> None:
    query = {"watch": "true", "sendInitialEvents": "true"}
    status = here.api.refuse("GET", here.path(SECRETS), query=query)
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert "resourceVersionMatch" in status["message"]


@pytest.mark.parametrize("version", ["abc", "-1"])
def test_a_version_that_is_none_is_refused(here: ScratchNamespace, version: str) -> None:
    with pytest.raises(errors.ApiError) as refused:
        next(here.watch(SECRETS, resource_version=version))
    assert refused.value.code in (400, 500)
    assert "resourceVersion" in refused.value.message


def test_a_version_not_yet_reached_is_refused_or_waited_for(here: ScratchNamespace) -> None:
    """A version of another server, or of this one before its data was lost, must not look like silence."""
    ahead = str(int(here.version(SECRETS)) + 1_000_000)
    with pytest.raises((errors.ApiError, StopIteration)):
        next(here.watch(SECRETS, resource_version=ahead, timeout=1, bookmarks=False))
