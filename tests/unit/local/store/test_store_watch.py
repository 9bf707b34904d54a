"""What a reader of a watch may count on besides its changes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from paddlecloud.kube import errors
from paddlecloud.local.store import recent
from paddlecloud.local.store import store as store_module
from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import ObjectAddress, Record
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
    watch.offer(Change(Op.CREATE, Record(ObjectAddress(KIND, "", "a"), 1, b"{}"), None))
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_waiting_without_a_change_ends_with_none_and_after_the_end_with_nothing(store: Store) -> None:
    watch = store.watch(KIND, None, since=0)
    assert await watch.next_batch(0.0) is None
    watch.close()
    assert await watch.next_batch(60) == []
    await store.close()


# --- Large objects, updated again and again ---------------------------------------------------------------------------


async def updates(store: Store, name: str, count: int, *, size: int) -> None:
    address = ObjectAddress(KIND, "", name)
    for _ in range(count):
        current = store.latest(address)
        obj = {"metadata": {"name": name, "uid": name}, "filler": "x" * size}
        await store.put(address, obj, expect=current.rev if current else 0)


async def test_a_reader_that_lags_behind_by_too_many_bytes_is_cut_off(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Watch, "LIMIT_BYTES", 10_000)
    slow = store.watch(KIND, None, since=0)
    await updates(store, "large", 10, size=1_000)
    assert len(await slow.next_batch(0.0) or ()) == 10
    await updates(store, "large", 20, size=1_000)
    assert await slow.next_batch(0.0) == [], "nothing is kept for it"
    await store.close()


async def test_recent_changes_are_kept_up_to_a_number_of_bytes_and_older_ones_are_in_the_table(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "MOST_BYTES", 10_000)
    await updates(store, "large", 20, size=1_000)
    kept = store._recent.since(store._recent.first - 1)
    assert kept is not None
    assert sum(change.size for change in kept) <= 10_000
    batch = await store.watch(KIND, None, since=3).next_batch(0.0)
    assert [change.rev for change in batch or ()] == list(range(4, 21))
    await store.close()


async def test_more_history_than_can_be_read_at_once_has_expired_for_its_collection_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "MOST", 2)
    monkeypatch.setattr(store_module, "HISTORY_BYTES", 20_000)
    await updates(store, "large", 10, size=4_000)
    await store.put(ObjectAddress("/others", "", "a"), {"metadata": {"name": "a", "uid": "a"}}, expect=0)
    await updates(store, "large", 2, size=1)
    with pytest.raises(errors.Expired, match="too much has changed"):
        store.watch(KIND, None, since=1)
    with pytest.raises(errors.Expired, match="too much has changed"):
        store.list_at(KIND, None, 1)
    others = await store.watch("/others", None, since=1).next_batch(0.0)
    assert [change.rev for change in others or ()] == [11]
    newer = await store.watch(KIND, None, since=9).next_batch(0.0)
    assert [change.rev for change in newer or ()] == [10, 12, 13]
    await store.close()


async def test_what_an_object_was_before_counts_towards_the_history_that_is_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "MOST", 1)
    monkeypatch.setattr(store_module, "HISTORY_BYTES", 20_000)
    await updates(store, "large", 1, size=30_000)
    await updates(store, "large", 2, size=1)
    with pytest.raises(errors.Expired, match="too much has changed"):
        store.watch(KIND, None, since=1)
    await store.close()


async def test_a_compaction_for_bytes_leaves_the_last_part_in_the_table(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "MOST", 1)
    monkeypatch.setattr(store_module, "RETAIN_BYTES", 80_000)
    while store._log.compacted < 2:
        await updates(store, "large", 1, size=1_000)
        await store._free()
    left = await store.watch(KIND, None, since=store._log.compacted).next_batch(0.0)
    assert sum(change.size for change in left or ()) > 8_000
    await store.close()


async def test_history_is_compacted_once_so_many_bytes_were_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "MOST_BYTES", 5_000)
    monkeypatch.setattr(store_module, "RETAIN_BYTES", 20_000)
    await updates(store, "large", 40, size=1_000)
    await store._free()
    rows, size = store._log._reader.execute("SELECT COUNT(*), SUM(LENGTH(value)) FROM log").fetchone()
    assert (rows < 30, size < 30_000) == (True, True)
    with pytest.raises(errors.Expired):
        store.watch(KIND, None, since=1)
    last = await store.watch(KIND, None, since=store.revision - 3).next_batch(0.0)
    assert [change.rev for change in last or ()] == [38, 39, 40]
    await store.close()
