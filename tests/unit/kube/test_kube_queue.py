"""The work queue: a key never runs twice at once, none is lost, delays and back-off follow the clock."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import PATIENCE
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.queue import DelayingQueue, RateLimitingQueue, ShutDown, WorkQueue


async def take(queue: WorkQueue[str]) -> str | None:
    """The next key if one is ready now."""
    task = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return None


async def test_a_key_added_twice_is_handed_out_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("b")
    queue.add("a")
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert await take(queue) is None


async def test_a_key_added_while_processed_runs_again_only_after_done() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("a")
    assert await take(queue) is None
    queue.done("a")
    assert await take(queue) == "a"
    queue.done("a")
    assert await take(queue) is None


async def test_keys_of_low_priority_wait_but_do_not_starve() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("old-1", "old-2", "old-3"):
        queue.add(key, later=True)
    for key in ("new-1", "new-2", "new-3", "new-4"):
        queue.add(key)
    assert len(queue) == 7
    order = [await queue.get() for _ in range(7)]
    assert order == ["new-1", "new-2", "new-3", "old-1", "new-4", "old-2", "old-3"]


async def test_a_key_that_may_wait_and_changes_waits_no_longer() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "c"):
        queue.add(key, later=True)
    queue.add("c")
    queue.add("c", later=True)  # once it is urgent it stays so
    assert [await queue.get() for _ in range(3)] == ["c", "a", "b"]
    assert await take(queue) is None


async def test_a_cancelled_worker_passes_its_turn_on() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first, second = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")  # wakes the first, which is cancelled before it can run
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert await asyncio.wait_for(second, PATIENCE) == "a"


async def test_shutting_down_hands_out_what_waits_then_sends_workers_home() -> None:
    queue: WorkQueue[str] = WorkQueue()
    sleeper = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    queue.add("b")
    queue.shut_down()
    queue.add("c")
    assert await sleeper == "a"
    assert await queue.get() == "b"
    with pytest.raises(ShutDown):
        await queue.get()


async def test_discarding_shut_down_hands_out_nothing_more() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("b")
    queue.shut_down(discard=True)
    queue.done("a")
    with pytest.raises(ShutDown):
        await queue.get()


async def test_discarding_ends_a_drain_that_waits_for_keys_nobody_takes() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    drained = asyncio.ensure_future(queue.drain())
    await asyncio.sleep(0)
    assert not drained.done()
    queue.shut_down(discard=True)
    await asyncio.wait_for(drained, PATIENCE)


async def test_drain_waits_for_what_is_processed_and_what_waits() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("b")
    await queue.get()
    drained = asyncio.ensure_future(queue.drain())
    await asyncio.sleep(0)
    queue.done("a")
    await asyncio.sleep(0)
    assert not drained.done()
    assert await queue.get() == "b"
    queue.done("b")
    await asyncio.wait_for(drained, PATIENCE)


async def test_a_delayed_key_comes_when_due_and_the_earlier_of_two_delays_counts() -> None:
    clock = FakeClock()
    queue: DelayingQueue[str] = DelayingQueue(clock)
    queue.add_after("late", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 2)
    queue.add_after("a", 7)
    await clock.advance(1.9)
    assert await take(queue) is None
    await clock.advance(0.1)
    assert await take(queue) == "a"
    queue.done("a")
    await clock.advance(7)
    assert await take(queue) is None  # the later wishes for "a" were dropped
    await clock.advance(1)
    assert await take(queue) == "late"


async def test_failures_wait_twice_as_long_each_time_until_forgotten() -> None:
    clock = FakeClock()
    queue: RateLimitingQueue[str] = RateLimitingQueue(clock, base=0.005, cap=0.03)
    for wait in (0.005, 0.010, 0.020, 0.030, 0.030):
        queue.add_rate_limited("a")
        await clock.advance(wait * 0.99)
        assert await take(queue) is None
        await clock.advance(wait * 0.02)
        assert await take(queue) == "a"
        queue.done("a")
    queue.forget("a")
    queue.add_rate_limited("a")
    await clock.advance(0.0051)
    assert await take(queue) == "a"


async def test_a_server_that_asks_for_time_gets_it() -> None:
    clock = FakeClock()
    queue: RateLimitingQueue[str] = RateLimitingQueue(clock)
    queue.add_rate_limited("a", at_least=3)
    await clock.advance(2.9)
    assert await take(queue) is None
    await clock.advance(0.2)
    assert await take(queue) == "a"


class Model:
    """The specification: which keys need work, which are being worked on, in one set each."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.again: set[str] = set()
        self.running: list[str] = []
        self.delayed: dict[str, float] = {}
        self.failures: dict[str, int] = {}

    def add(self, key: str) -> None:
        if key in self.running:
            self.again.add(key)
        elif key not in self.waiting:
            self.waiting.append(key)

    def done(self, key: str) -> None:
        self.running.remove(key)
        if key in self.again:
            self.again.remove(key)
            self.waiting.append(key)

    def delay(self, key: str, due: float) -> None:
        self.delayed[key] = min(due, self.delayed.get(key, due))

    def tick(self, now: float) -> None:
        for key in sorted(self.delayed, key=lambda k: self.delayed[k]):
            if self.delayed[key] <= now:
                del self.delayed[key]
                self.add(key)


KEYS = st.sampled_from(["a", "b", "c", "d"])
STEPS = st.one_of(
    st.tuples(st.just("add"), KEYS),
    st.tuples(st.just("take"), st.just("")),
    st.tuples(st.just("done"), KEYS),
    st.tuples(st.just("fail"), KEYS),
    st.tuples(st.just("cancelled take"), st.just("")),
    # Delays are distinct powers of two, so no two keys are due at the same instant by accident.
    st.tuples(st.sampled_from(["after 1", "after 2", "after 4"]), KEYS),
    st.tuples(st.sampled_from(["tick 1", "tick 3"]), st.just("")),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_any_interleaving_of_add_take_done_fail_and_time_agrees_with_the_model(steps: list[tuple[str, str]]) -> None:
    asyncio.run(run_against_model(steps))


async def run_against_model(steps: list[tuple[str, str]]) -> None:
    clock = FakeClock(0)
    queue: RateLimitingQueue[str] = RateLimitingQueue(clock, base=0.25, cap=2)
    model = Model()
    jitter = 0.0
    for step, key in steps:
        verb, _, number = step.partition(" ")
        if verb == "add":
            queue.add(key)
            model.add(key)
        elif verb == "take":
            taken = await take(queue)
            assert taken == (model.waiting[0] if model.waiting else None)
            if taken is not None:
                assert taken not in model.running  # never twice at once
                model.running.append(model.waiting.pop(0))
        elif verb == "cancelled":
            if not model.waiting:
                assert await take(queue) is None
        elif verb == "done" and key in model.running:
            queue.forget(key)
            model.failures.pop(key, None)
            queue.done(key)
            model.done(key)
        elif verb == "fail" and key in model.running:
            queue.add_rate_limited(key)
            failures = model.failures.get(key, 0)
            model.failures[key] = failures + 1
            model.delay(key, clock.monotonic() + min(2, 0.25 * 2**failures))
            queue.done(key)
            model.done(key)
        elif verb == "after":
            jitter += 0.001
            queue.add_after(key, int(number) + jitter)
            model.delay(key, clock.monotonic() + int(number) + jitter)
        elif verb == "tick":
            await clock.advance(int(number))
            model.tick(clock.monotonic())
        assert (len(queue), queue.processing, queue.delayed) == (
            len(model.waiting),
            len(model.running),
            len(model.delayed),
        )
    # Nothing is lost: after enough time every key that was wanted is handed out.
    await clock.advance(100)
    model.tick(clock.monotonic())
    for key in list(model.running):
        queue.done(key)
        model.done(key)
    left = []
    while (found := await take(queue)) is not None:
        left.append(found)
        queue.done(found)
    assert sorted(left) == sorted(model.waiting)
    queue.shut_down()
    await asyncio.sleep(0)
