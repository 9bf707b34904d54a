"""Expectations: no decision on a cache that does not hold our own last writes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.expectations import Expectations, ref_of
from paddlecloud.kube.resource import Key, Object

OWNER = Key("ns", "job")


def pod(version: int, *, uid: str = "u1", **meta: Any) -> Object:
    metadata = {"namespace": "ns", "name": "p", "uid": uid, "resourceVersion": str(version), **meta}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


REF = ref_of(pod(1))


def test_a_creation_is_awaited_until_the_informer_shows_it() -> None:
    expectations = Expectations(clock=FakeClock())
    assert expectations.pending(OWNER) is None
    expectations.expect(OWNER, REF)
    assert expectations.pending(OWNER) is not None
    expectations.answered(OWNER, pod(7))
    assert expectations.pending(OWNER) is not None
    expectations.observe(OWNER, None, pod(7))
    assert expectations.pending(OWNER) is None


def test_an_informer_faster_than_the_answer_is_remembered() -> None:
    expectations = Expectations(clock=FakeClock())
    expectations.expect(OWNER, REF)
    expectations.observe(OWNER, None, pod(7))
    assert expectations.pending(OWNER) is not None, "the watch reported the pod before the create was answered"
    expectations.answered(OWNER, pod(7))
    assert expectations.pending(OWNER) is None


def test_events_of_an_older_incarnation_does_not_count() -> None:
    expectations = Expectations(clock=FakeClock())
    expectations.expect(OWNER, REF)
    expectations.answered(OWNER, pod(7, uid="u2"))
    expectations.observe(OWNER, pod(4), pod(5))
    expectations.observe(OWNER, pod(5), None)
    assert expectations.pending(OWNER) is not None
    expectations.observe(OWNER, None, pod(7, uid="u2"))
    assert expectations.pending(OWNER) is None


def test_a_write_that_changed_nothing_is_not_awaited() -> None:
    expectations = Expectations(clock=FakeClock())
    expectations.expect(OWNER, REF, seen="7")
    expectations.answered(OWNER, pod(7))
    assert expectations.pending(OWNER) is None


def test_a_write_that_failed_is_not_awaited() -> None:
    expectations = Expectations(clock=FakeClock())
    expectations.expect(OWNER, REF)
    expectations.drop(OWNER, REF)
    assert expectations.pending(OWNER) is None


@pytest.mark.parametrize(
    "news",
    [None, pod(9, deletionTimestamp="2026-01-01T00:00:00Z"), pod(9, uid="u2")],
    ids=["gone", "going", "replaced"],
)
def test_a_deletion_is_settled_when_that_incarnation_is_gone_or_going(news: Object | None) -> None:
    expectations = Expectations(clock=FakeClock())
    expectations.expect_deleted(OWNER, REF, "u1")
    expectations.observe(OWNER, pod(7), pod(8))
    assert expectations.pending(OWNER) is not None
    expectations.observe(OWNER, pod(8), news)
    assert expectations.pending(OWNER) is None


async def test_what_never_comes_is_waited_for_only_so_long() -> None:
    clock = FakeClock()
    expectations = Expectations(clock=clock, ttl=30)
    expectations.expect(OWNER, REF)
    await clock.advance(10)
    assert expectations.pending(OWNER) == pytest.approx(20)
    await clock.advance(20)
    assert expectations.pending(OWNER) is None


def test_versions_that_are_not_numbers_cannot_be_awaited() -> None:
    expectations = Expectations(clock=FakeClock())
    expectations.expect(OWNER, REF)
    opaque = pod(1)
    opaque["metadata"]["resourceVersion"] = "abc"
    expectations.answered(OWNER, opaque)
    assert expectations.pending(OWNER) is None


def test_owners_do_not_wait_for_each_other_and_a_forgotten_one_not_at_all() -> None:
    expectations = Expectations(clock=FakeClock())
    expectations.expect(OWNER, REF)
    assert expectations.pending(Key("ns", "other")) is None
    expectations.forget(OWNER)
    assert expectations.pending(OWNER) is None


@given(st.permutations(["expect", "answered", "shown", "shown later"]))
def test_in_whatever_order_answer_and_event_come_the_note_is_settled_once_both_did(order: list[str]) -> None:
    order.remove("expect")  # a note is always made before the request leaves
    expectations = Expectations(clock=FakeClock())
    expectations.expect(OWNER, REF)
    happened = set()
    for step in order:
        happened.add(step)
        if step == "answered":
            expectations.answered(OWNER, pod(7))
        elif step == "shown":
            expectations.observe(OWNER, None, pod(7))
        else:
            expectations.observe(OWNER, None, pod(8))
        settled = "answered" in happened and bool(happened & {"shown", "shown later"})
        assert (expectations.pending(OWNER) is None) == settled
