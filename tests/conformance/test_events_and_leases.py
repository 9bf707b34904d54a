"""Events with series, in both groups; Leases as elections use them."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, EVENTS, LEASES, Object, Resource

from .world import ScratchNamespace, a

NEW_EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
NOW = "2026-01-02T03:04:05.678901Z"


def reference(obj: Object) -> Object:
    meta = obj["metadata"]
    return {
        "kind": obj["kind"], "apiVersion": obj["apiVersion"], "name": meta["name"], "namespace": meta["namespace"],
        "uid": meta["uid"],
    }  # fmt: skip


@pytest.fixture
def subject(here: ScratchNamespace) -> Object:
    return here.make(CONFIGMAPS, "subject")


def old_event(name: str, subject: Object, **fields: Any) -> Object:
    return a(
        EVENTS, name,
        **{
            "involvedObject": reference(subject), "reason": "Tested", "message": "hello", "type": "Normal",
            "source": {"component": "conformance"}, "count": 1,
            "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z", **fields,
        },
    )  # fmt: skip


def new_event(name: str, subject: Object, **fields: Any) -> Object:
    return a(
        NEW_EVENTS, name,
        **{
            "regarding": reference(subject), "reason": "Tested", "note": "hello", "type": "Normal", "action": "Test",
            "reportingController": "example.org/conformance", "reportingInstance": "conformance-0",
            "eventTime": NOW, **fields,
        },
    )  # fmt: skip


def test_an_event_counts_its_repetitions(here: ScratchNamespace, subject: Object) -> None:
    here.create(EVENTS, old_event("e", subject))
    patched = here.patch(EVENTS, "e", {"count": 2, "lastTimestamp": "2026-01-02T03:05:05Z"}, kind="strategic")
    assert (patched["count"], patched["lastTimestamp"]) == (2, "2026-01-02T03:05:05Z")


def test_events_are_found_by_what_they_are_about(here: ScratchNamespace, subject: Object) -> None:
    other = here.make(CONFIGMAPS, "other")
    here.create(EVENTS, old_event("e1", subject, type="Warning"))
    here.create(EVENTS, old_event("e2", other))
    uid = subject["metadata"]["uid"]
    assert here.names(EVENTS, fields=f"involvedObject.uid={uid}") == ["e1"]
    assert here.names(EVENTS, fields="involvedObject.kind=ConfigMap,involvedObject.name=other") == ["e2"]
    assert here.names(EVENTS, fields="type=Warning") == ["e1"]
    assert here.names(EVENTS, fields="reason=Tested,source=conformance") == ["e1", "e2"]


def test_events_without_a_source_are_found_by_who_reports_them(here: ScratchNamespace, subject: Object) -> None:
    here.create(NEW_EVENTS, new_event("new", subject))
    here.create(EVENTS, old_event("old", subject, reportingComponent="example.org/conformance"))
    assert here.names(EVENTS, fields="source=example.org/conformance") == ["new"]
    assert here.names(EVENTS, fields="reportingComponent=example.org/conformance") == ["new", "old"]


def test_an_event_belongs_to_the_namespace_of_its_object(here: ScratchNamespace, subject: Object) -> None:
    event = old_event("e", subject)
    event["involvedObject"]["namespace"] = "elsewhere"
    with pytest.raises(errors.Invalid, match="involvedObject.namespace"):
        here.create(EVENTS, event)


def test_a_field_of_the_other_event_group_does_not_stand_in_for_the_namespace(
    here: ScratchNamespace, subject: Object
) -> None:
    elsewhere = {**reference(subject), "namespace": "kube-system"}
    with pytest.raises(errors.Invalid, match="does not match event.namespace"):
        here.create(EVENTS, old_event("e", subject, involvedObject=elsewhere, regarding=reference(subject)))


def test_both_groups_show_the_same_events(here: ScratchNamespace, subject: Object) -> None:
    here.create(NEW_EVENTS, new_event("e", subject))
    old = here.get(EVENTS, "e")
    assert (old["apiVersion"], old["involvedObject"]["name"], old["message"]) == ("v1", "subject", "hello")
    assert old["reportingComponent"] == "example.org/conformance"
    assert old["eventTime"] == NOW
    here.create(EVENTS, old_event("f", subject))
    new = here.get(NEW_EVENTS, "f")
    assert (new["regarding"]["name"], new["note"], new["deprecatedCount"]) == ("subject", "hello", 1)
    assert new["deprecatedSource"] == {"component": "conformance"}


def test_a_series_counts_in_the_new_group(here: ScratchNamespace, subject: Object) -> None:
    here.create(NEW_EVENTS, new_event("e", subject))
    series = {"count": 2, "lastObservedTime": NOW}
    assert here.patch(NEW_EVENTS, "e", {"series": series}, kind="strategic")["series"] == series
    assert here.get(EVENTS, "e")["series"] == series


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"eventTime": None}, "eventTime"),
        ({"reportingController": ""}, "reportingController"),
        ({"action": ""}, "action"),
        ({"reason": ""}, "reason"),
        ({"type": "Loud"}, "type"),
        ({"series": {"count": 1, "lastObservedTime": NOW}}, "series"),
    ],
)
def test_new_events_are_complete(here: ScratchNamespace, subject: Object, fields: Object, why: str) -> None:
    with pytest.raises(errors.Invalid, match=why):
        here.create(NEW_EVENTS, new_event("e", subject, **fields))


# Leases --------------------------------------------------------------------------------------------------------------


def lease(holder: str, **spec: Any) -> Object:
    return {"holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": NOW, "renewTime": NOW, **spec}


def test_a_lease_keeps_its_microseconds(here: ScratchNamespace) -> None:
    assert here.make(LEASES, "l", spec=lease("one"))["spec"] == lease("one")


def test_two_candidates_cannot_both_take_a_lease(here: ScratchNamespace) -> None:
    seen = here.make(LEASES, "l", spec=lease("nobody"))
    here.update(LEASES, {**seen, "spec": lease("one", leaseTransitions=1)})
    with pytest.raises(errors.Conflict):
        here.update(LEASES, {**seen, "spec": lease("two", leaseTransitions=1)})
    assert here.get(LEASES, "l")["spec"]["holderIdentity"] == "one"


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"leaseDurationSeconds": 0}, 422),
        ({"leaseDurationSeconds": -1}, 422),
        ({"leaseTransitions": -1}, 422),
        ({"renewTime": "yesterday"}, 400),
    ],
)
def test_a_lease_must_make_sense(here: ScratchNamespace, spec: Object, code: int) -> None:
    with pytest.raises(errors.ApiError) as refused:
        here.make(LEASES, "l", spec=lease("one", **spec))
    assert refused.value.code == code
