"""The pace of watching again: at once the first time, then never more often than once a second, not past a deadline."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from paddlecloud.sdk import watching
from paddlecloud.sdk.watching import rounds


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=made))
    return made


def test_given_a_server_that_ends_watches_at_once_then_rounds_begin_a_second_apart(clock: Clock) -> None:
    paced = rounds()
    assert next(paced) == 0.0
    for _ in range(3):
        clock.now += 0.25  # the watch
        assert next(paced) == 0.75
        clock.now += 0.75  # the pause


def test_given_a_watch_that_lasted_then_the_next_begins_at_once(clock: Clock) -> None:
    paced = rounds()
    next(paced)
    clock.now += 240
    assert next(paced) == 0.0


def test_given_a_deadline_then_the_last_round_begins_there(clock: Clock) -> None:
    paced = rounds(100.5)
    next(paced)
    assert next(paced) == 0.5
    clock.now += 0.5
    assert next(paced, None) is None
