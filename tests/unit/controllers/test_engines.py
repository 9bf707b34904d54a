"""When a controller is made anew because other kinds are served: two looks must agree, and an outage is no change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from paddlecloud.controllers.engines import LOOK_EVERY, Served, follow
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.errors import Unreachable
from paddlecloud.kube.resource import PODGROUPS, SAMPLESETS, Resource

VOLCANO, SETS, BOTH, NONE = [PODGROUPS], [SAMPLESETS], [PODGROUPS, SAMPLESETS], list[Resource]()
AWAY = None
Look = list[Resource] | None


class Story:
    """What each look finds, the last for ever; and what was made of it."""

    def __init__(self, *looks: Look) -> None:
        self._looks = list(looks)
        self.made: list[Served] = []
        self.ended = 0

    async def find(self) -> list[Resource]:
        found = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if found is AWAY:
            raise Unreachable("connection refused")
        return found

    def make(self, served: Served) -> Callable[[], Awaitable[None]]:
        self.made.append(served)

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                self.ended += 1

        return work


@pytest.mark.parametrize(
    ("looks", "made"),
    [
        ((NONE,), [NONE]),
        ((AWAY, AWAY, VOLCANO), [VOLCANO]),
        ((NONE, VOLCANO), [NONE, VOLCANO]),
        ((BOTH, VOLCANO, BOTH), [BOTH]),
        ((BOTH, AWAY), [BOTH]),
        ((BOTH, VOLCANO, AWAY, VOLCANO), [BOTH, VOLCANO]),
        ((NONE, VOLCANO, SETS, BOTH), [NONE, BOTH]),
        ((VOLCANO, VOLCANO, NONE, NONE, VOLCANO), [VOLCANO, NONE, VOLCANO]),
    ],
    ids=["as-it-was", "late", "installed", "a-hiccup", "an-outage", "gone-around-an-outage", "one-by-one", "and-back"],
)
async def test_a_controller_is_made_for_what_two_looks_agree_on(looks: tuple[Look, ...], made: list[Look]) -> None:
    clock, story = FakeClock(), Story(*looks)
    task = asyncio.ensure_future(follow(story.find, story.make, clock=clock))
    await clock.advance(10 * LOOK_EVERY)
    assert story.made == [frozenset(kinds or ()) for kinds in made]
    assert story.ended == len(made) - 1, "never two at a time"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert story.ended == len(made)


async def test_an_engine_that_comes_just_after_a_look_is_used_half_a_minute_later() -> None:
    """The longest that it can take, by the clock."""
    clock, story = FakeClock(), Story(NONE, NONE, VOLCANO)
    task = asyncio.ensure_future(follow(story.find, story.make, clock=clock))
    await clock.advance(LOOK_EVERY)  # from here on the engine is there
    await clock.advance(29.9)
    assert story.made == [frozenset()]
    await clock.advance(0.1)
    assert story.made == [frozenset(), frozenset(VOLCANO)]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_controller_that_fails_is_not_hidden() -> None:
    async def fails() -> None:
        raise RuntimeError("a mistake")

    with pytest.raises(RuntimeError, match="a mistake"):
        await follow(Story(NONE).find, lambda served: fails, clock=FakeClock())
