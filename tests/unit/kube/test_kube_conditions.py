"""Conditions: times move only with the status, places in the list never."""

from __future__ import annotations

import pytest

from paddlecloud.api.fields import Condition
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.conditions import dated, find, holds, put, since, with_condition, without_condition
from paddlecloud.kube.resource import Object

NOW, LATER = 1_700_000_000.0, 1_700_000_060.0


def ready(status: str, reason: str = "r", message: str = "m") -> Object:
    return {"type": "Ready", "status": status, "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        (None, ready("True"), True),
        (ready("False"), ready("True"), True),
        (ready("True"), ready("True"), False),
        (ready("True"), ready("True", reason="other", message="other"), False),
    ],
)
def test_the_time_of_a_transition_moves_only_with_the_status(old: Object | None, new: Object, moved: bool) -> None:
    before = dated(old, None, NOW) if old is not None else None
    assert dated(new, before, LATER) == {**new, "lastTransitionTime": rfc3339(LATER if moved else NOW)}


def test_a_condition_without_a_time_gets_one() -> None:
    assert dated(ready("True"), ready("True"), NOW)["lastTransitionTime"] == rfc3339(NOW)


def test_a_condition_keeps_its_place_and_others_are_left_alone() -> None:
    first, last = {"type": "A", "status": "True"}, {"type": "Z", "status": "False"}
    found = with_condition(
        [first, dated(ready("False"), None, NOW), last], "Ready", "True", reason="r", message="", now=LATER
    )
    assert [c["type"] for c in found] == ["A", "Ready", "Z"]
    assert (found[0], found[2]) == (first, last)
    assert without_condition(found, "Ready") == [first, last]


def test_what_is_there_already_is_the_same_list_and_a_touch_dates_only_the_update() -> None:
    old = with_condition([], "Ready", "True", reason="r", message="m", now=NOW, update_time=True)
    assert with_condition(old, "Ready", "True", reason="r", message="m", now=LATER, update_time=True) == old
    touched = with_condition(old, "Ready", "True", reason="r", message="m", now=LATER, update_time=True, touch=True)
    assert (touched[0]["lastTransitionTime"], touched[0]["lastUpdateTime"]) == (rfc3339(NOW), rfc3339(LATER))


def test_conditions_of_our_own_kinds_follow_the_same_rules() -> None:
    found = put([Condition(type="A", status="True")], Condition(type="Ready", status="False", reason="r"), NOW)
    found = put(found, Condition(type="Ready", status="False", reason="other"), LATER)
    assert (since(found, "Ready"), holds(found, "Ready")) == (NOW, False)
    found = put(found, Condition(type="Ready", status="True", reason="other"), LATER)
    assert (since(found, "Ready"), holds(found, "Ready")) == (LATER, True)
    assert [c.type for c in found] == ["A", "Ready"]
    assert find(found, "Z") is None
    assert since(found, "A") is None
