"""Plain code on an asynchronous core: results, errors, interruption, and an end that leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import CancelledError, Future

import pytest

from paddlecloud.sdk.portal import Portal


@pytest.fixture
def portal() -> Iterator[Portal]:
    made = Portal()
    yield made
    made.close()


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


def test_results_and_errors_come_back(portal: Portal) -> None:
    async def fail() -> None:
        raise KeyError("x")

    assert portal.run(answer(3)) == 3
    with pytest.raises(KeyError):
        portal.run(fail())
    assert portal.run(answer(4)) == 4


def test_it_works_where_an_event_loop_already_runs(portal: Portal) -> None:
    """As in a notebook."""

    async def cell() -> int:
        return portal.run(answer(5))

    assert asyncio.run(cell()) == 5


def test_it_may_be_used_from_several_threads(portal: Portal) -> None:
    got: list[int] = []
    threads = [threading.Thread(target=lambda n=n: got.append(portal.run(answer(n)))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(got) == list(range(8))


def test_a_generator_left_early_is_closed(portal: Portal) -> None:
    closed = threading.Event()

    async def count() -> AsyncGenerator[int, None]:
        try:
            for number in range(100):
                yield number
        finally:
            closed.set()

    numbers = portal.iterate(count())
    assert [next(numbers), next(numbers)] == [0, 1]
    numbers.close()
    assert closed.wait(5)


def test_an_interrupt_cancels_the_work(portal: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = threading.Event()
    begun = threading.Event()

    async def long() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def interrupted(self: object, timeout: float | None = None) -> None:
        begun.wait(5)
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        portal.run(long())
    assert cancelled.wait(5)


def test_closing_ends_what_is_at_work() -> None:
    portal = Portal()
    ended = threading.Event()
    begun = threading.Event()

    async def forever() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    def wait() -> None:
        with pytest.raises(CancelledError):
            portal.run(forever())

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert begun.wait(5)
    portal.close()
    assert ended.wait(5)
    waiter.join(5)
    assert not waiter.is_alive()
    assert portal.closed


def test_a_forgotten_portal_closes_by_itself() -> None:
    cleaned = threading.Event()

    async def clean() -> None:
        cleaned.set()

    portal = Portal(clean)
    thread = portal._thread
    assert portal.run(answer(1)) == 1
    del portal
    gc.collect()
    thread.join(5)
    assert cleaned.is_set()
    assert not thread.is_alive()


def test_after_the_end_calls_are_refused(portal: Portal) -> None:
    portal.close()
    with pytest.raises(RuntimeError, match="closed"):
        portal.run(answer(1))


def test_a_call_from_its_own_loop_is_refused_instead_of_hanging(portal: Portal) -> None:
    async def inside() -> int:
        return portal.run(answer(1))

    with pytest.raises(RuntimeError, match="own loop"):
        portal.run(inside())
