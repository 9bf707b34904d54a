"""What telling of PodGroups costs: as much as there is news, not as there are groups that wait."""

from __future__ import annotations

from typing import Any, cast

import pytest

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.controller.group_status_writer import SETTLE, GroupStatusWriter
from paddlecloud.local.scheduler.controller.watches import Watches
from paddlecloud.local.scheduler.state.state import State
from unit.local.scheduler.scheduler_things import group, pod

GROUPS = 100


class Written:
    """A client that remembers which groups were written."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def raw(self, method: str, path: str, **rest: Any) -> None:
        self.paths.append(path)


class Counting(GroupStatusWriter):
    looked = 0

    def _status(self, *args: Any) -> Object:
        self.looked += 1
        return super()._status(*args)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def waiting_groups(state: State) -> None:
    """Groups with a pod each that waits; what is said about them may be late."""
    for number in range(GROUPS):
        state.on_group(None, group(f"g{number}"))
        state.on_pod(None, pod(f"p{number}", group=f"g{number}"))


async def test_groups_that_wait_are_looked_at_when_something_changed_and_when_their_time_has_come(
    clock: FakeClock,
) -> None:
    state, written = State(), Written()
    reporter = Counting(cast(Client, written), clock, state, cast(Watches, None))
    waiting_groups(state)
    for _ in range(20):
        await reporter._pass()
    assert (reporter.looked, written.paths) == (GROUPS, [])
    state.touched.add(next(iter(state.groups)))
    await reporter._pass()
    assert reporter.looked == GROUPS + 1, "news of one is a look at one"
    await clock.advance(SETTLE)
    await reporter._pass()
    assert len(set(written.paths)) == len(written.paths) == GROUPS, "each once"
    assert reporter.looked == 2 * GROUPS + 1
    for _ in range(20):
        await reporter._pass()
    assert reporter.looked == 2 * GROUPS + 1, "nothing is left to write"
