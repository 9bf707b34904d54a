"""Builds of one image wait for each other without holding up what the first of them needs."""

from __future__ import annotations

import asyncio
import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from paddlecloud.local.images.builder import exclusive


def test_builds_that_wait_leave_threads_to_the_one_that_is_at_work(tmp_path: Path) -> None:
    """A machine of two cores has six threads for all that blocks: seven pods of a new image used to wait for ever."""
    done: list[str] = []

    async def build(name: str, waiting: asyncio.Event, others: list[asyncio.Event]) -> None:
        async with exclusive(tmp_path / "lock", waiting=waiting.set):
            await asyncio.gather(*(event.wait() for event in others))
            await asyncio.to_thread(done.append, name)

    async def scenario() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=2))
        waits = [asyncio.Event() for _ in range(3)]
        first = asyncio.create_task(build("first", asyncio.Event(), waits))
        rest = [asyncio.create_task(build("later", event, [])) for event in waits]
        await asyncio.wait_for(asyncio.gather(first, *rest), 20)

    asyncio.run(scenario())
    assert done == ["first", "later", "later", "later"]


@pytest.mark.timeout(60)
def test_a_build_of_another_process_is_waited_for_and_giving_up_leaves_nothing_behind(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    elsewhere = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(elsewhere, fcntl.LOCK_EX)

    async def enter(waiting: asyncio.Event) -> None:
        async with exclusive(lock, waiting=waiting.set):
            pass

    async def scenario() -> None:
        waiting = asyncio.Event()
        given_up = asyncio.create_task(enter(waiting))
        await waiting.wait()
        given_up.cancel()
        await asyncio.wait([given_up])
        waiting.clear()
        patient = asyncio.create_task(enter(waiting))
        await waiting.wait()
        assert not patient.done()
        os.close(elsewhere)
        await patient

    asyncio.run(scenario())
