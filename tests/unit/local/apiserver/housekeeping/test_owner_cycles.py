"""Circles of owner references: which there are, and that looking for one takes a bounded number of steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from paddlecloud.local.apiserver.housekeeping.owner_cycles import MOST_STEPS, in_a_cycle

RING = {"a": "b", "b": "c", "c": "a"}


@pytest.mark.parametrize(
    ("owners", "dependents", "found"),
    [
        ({}, "", True),
        ({}, "b", False),
        ({"a": "b", "b": "a"}, "b", True),
        (RING, "c", True),
        (RING, "cd", False),
        ({**RING, "d": "a"}, "cd", False),
        ({"a": "b", "b": "b"}, "b", True),
        ({"a": "b", "b": "b"}, "c", False),
    ],
)
def test_an_object_may_go_when_all_it_waits_for_wait_for_it(
    owners: Mapping[str, Sequence[str]], dependents: str, found: bool
) -> None:
    assert in_a_cycle("a", set(dependents), lambda name: owners.get(name, "")) is found


@pytest.mark.parametrize("leads_on", [True, False])
def test_given_a_crowd_that_owns_each_other_then_looking_at_one_object_takes_few_steps(leads_on: bool) -> None:
    owners = range(2_000)
    looked_at = []

    def references(name: int) -> Iterator[int | None]:
        for owner in owners:
            looked_at.append(owner)
            yield owner if leads_on or owner == name + 1 else None

    assert in_a_cycle(0, {1}, references)
    assert len(looked_at) <= len(owners)
    looked_at.clear()
    assert not in_a_cycle(0, {-1}, references)
    assert len(looked_at) <= MOST_STEPS + 1
