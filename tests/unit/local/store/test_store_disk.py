"""What the store asks of the disk: in durable mode nothing is acknowledged before it is there; upkeep stays bounded."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from harness import PATIENCE
from paddlecloud.kube import errors
from paddlecloud.local.store import log
from paddlecloud.local.store import store as store_module
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store

KIND = "/things"


async def put(store: Store, name: str, *, size: int = 0) -> int:
    address = ObjectAddress(KIND, "", name)
    current = store.latest(address)
    obj = {"metadata": {"name": name, "uid": name}, "filler": "x" * size}
    return (await store.put(address, obj, expect=current.rev if current else 0)).rev


async def test_a_durable_write_is_acknowledged_only_once_the_disk_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut right after a sync: what is on the disk then holds everything acknowledged so far."""
    live = tmp_path / "live"
    live.mkdir()
    synced: list[Path] = []

    def note(file: int) -> None:
        copy = tmp_path / f"cut-{len(synced)}"
        shutil.copytree(live, copy)
        synced.append(copy)

    monkeypatch.setattr(log.os, "fdatasync", note)
    store = Store(live / "state.db", durable=True)
    acknowledged: list[tuple[int, str]] = []

    async def writer(number: int) -> None:
        for step in range(4):
            name = f"w{number}-{step}"
            await put(store, name)
            acknowledged.append((len(synced), name))

    await asyncio.gather(*(writer(number) for number in range(3)))
    await store.close()
    assert len(synced) < 12, "writes that wait together share a sync"
    for moment, name in acknowledged:
        after_cut = Store(synced[moment - 1] / "state.db")
        assert after_cut.get(ObjectAddress(KIND, "", name)) is not None, f"{name} was acknowledged and is lost"
        await after_cut.close()


class Syncs:
    """Counts what is asked of the disk, and takes no time for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        monkeypatch.setattr(log.os, "fdatasync", self._sync)

    def _sync(self, file: int) -> None:
        self.count += 1


async def test_writers_that_come_together_share_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However quick the disk is, and though no two of them write in the same round of the loop."""
    syncs = Syncs(monkeypatch)
    store = Store(tmp_path / "state.db", durable=True)

    async def writer(number: int) -> None:
        for step in range(20):
            for _ in range(5 * number):
                await asyncio.sleep(0)
            await put(store, f"w{number}-{step}")

    await asyncio.gather(*(writer(number) for number in range(8)))
    assert syncs.count <= 8 * 20 / 3
    await store.close()


async def test_a_lone_writer_does_not_wait_for_company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = Syncs(monkeypatch)
    monkeypatch.setattr(store_module, "GATHER", 3600.0)
    store = Store(tmp_path / "state.db", durable=True)
    for step in range(20):
        await asyncio.wait_for(put(store, f"n{step}"), PATIENCE)
    assert syncs.count == 20
    await store.close()


async def test_a_disk_that_refuses_to_sync_fails_the_writes_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "state.db", durable=True)
    first = await put(store, "kept")
    watch = store.watch(KIND, None, since=first)
    broken = True

    def sync(file: int) -> None:
        if broken:
            raise OSError(5, os.strerror(5))

    monkeypatch.setattr(log.os, "fdatasync", sync)
    results = await asyncio.gather(put(store, "lost"), put(store, "kept"), return_exceptions=True)
    assert all(isinstance(result, errors.ServiceUnavailable) for result in results)
    assert "did not reach the disk" in str(results[0])
    assert store.get(ObjectAddress(KIND, "", "lost")) is None
    broken = False
    again = await put(store, "kept")
    assert again == first + 1
    batch = await watch.next_batch(1.0)
    assert batch is not None
    assert [change.rev for change in batch] == [again]
    await store.close()
    reopened = Store(tmp_path / "state.db")
    assert [(record.address.name, record.rev) for record in reopened.list(KIND)] == [("kept", again)]
    await reopened.close()


async def test_the_write_ahead_log_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "CHECKPOINT", 256 * 1024)
    store = Store(tmp_path / "state.db")
    largest = 0
    for step in range(300):
        await put(store, f"n{step % 7}", size=8_000)
        largest = max(largest, (tmp_path / "state.db-wal").stat().st_size)
    assert largest < 1024 * 1024, "2.4 MB were written"
    assert store.revision == 300
    await store.close()


async def test_the_loop_is_free_while_the_disk_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    release = threading.Event()
    store = Store(tmp_path / "state.db", durable=True)
    monkeypatch.setattr(log.os, "fdatasync", lambda file: release.wait(10))
    writing = [asyncio.ensure_future(put(store, f"n{number}")) for number in range(5)]
    for _ in range(10):
        await asyncio.sleep(0)
    later = asyncio.ensure_future(put(store, "later"))
    await asyncio.sleep(0)
    assert not any(task.done() for task in (*writing, later))
    assert store.list(KIND) == [], "nobody sees what is not on the disk"
    release.set()
    await asyncio.wait_for(asyncio.gather(*writing, later), PATIENCE)
    assert len(store.list(KIND)) == 6
    await store.close()
