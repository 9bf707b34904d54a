"""What a reader of a watch may count on besides its changes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import Address, Record
from paddlecloud.local.store.store import Store
from paddlecloud.local.store.watch import Change, Watch

KIND = "/things"


@pytest.fixture
async def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state.db")


async def test_a_cancellation_that_comes_together_with_a_change_is_not_lost() -> None:
    watch = Watch(KIND, None, ())
    reading = asyncio.ensure_future(watch.next_batch(60))
    await asyncio.sleep(0)
    watch.offer(Change(Op.CREATE, Record(Address(KIND, "", "a"), 1, b"{}"), None))
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_waiting_without_a_change_ends_with_none_and_after_the_end_with_nothing(store: Store) -> None:
    watch = store.watch(KIND, None, since=0)
    assert await watch.next_batch(0.0) is None
    watch.close()
    assert await watch.next_batch(60) == []
    await store.close()
