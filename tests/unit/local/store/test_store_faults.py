"""What must not hurt: killed processes, torn logs, full disks, directories of newer releases."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from paddlecloud.kube import errors
from paddlecloud.local.store.log import FORMAT, Op, StorageError
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store

KIND = "/things"


def thing(name: str, value: int = 0, size: int = 0) -> dict[str, object]:
    return {"metadata": {"name": name, "uid": name}, "value": value, "filler": "x" * size}


async def put(store: Store, name: str, value: int = 0, *, size: int = 0) -> int:
    address = ObjectAddress(KIND, "", name)
    current = store.latest(address)
    return (await store.put(address, thing(name, value, size), expect=current.rev if current else 0)).rev


WRITER = """
import asyncio, sys
from pathlib import Path
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store

async def main():
    store = Store(Path(sys.argv[1]), durable=sys.argv[2] == "durable")
    print("up", store.revision, flush=True)
    async def writer(number):
        for step in range(100_000):
            address = ObjectAddress("/things", "", f"w{number}-{step % 7}")
            current = store.latest(address)
            obj = {"metadata": {"name": address.name, "uid": address.name}, "value": step}
            rev = (await store.put(address, obj, expect=current.rev if current else 0)).rev
            sys.stdout.write(f"{address.name} {rev} {step}\\n")
            sys.stdout.flush()
    await asyncio.gather(*(writer(n) for n in range(4)))
asyncio.run(main())
"""


@pytest.mark.parametrize("mode", ["default", "durable"])
@pytest.mark.parametrize("rounds", [pytest.param(10, id="10 rounds"), pytest.param(200, marks=pytest.mark.soak)])
async def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, mode: str, rounds: int) -> None:
    path = tmp_path / "state.db"
    acknowledged: dict[str, tuple[int, int]] = {}
    rng = random.Random(7)
    for _ in range(rounds):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path), mode], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("up")
        for _ in range(rng.randint(1, 300)):
            name, rev, step = process.stdout.readline().split()
            acknowledged[name] = (int(rev), int(step))
        process.send_signal(signal.SIGKILL)
        # Only whole lines count as acknowledged: the last one may be torn.
        for line in process.stdout.read().splitlines(keepends=True):
            if line.endswith("\n") and len(line.split()) == 3:
                name, rev, step = line.split()
                acknowledged[name] = (int(rev), int(step))
        process.wait()
        store = Store(path)
        for name, (rev, step) in acknowledged.items():
            record = store.get(ObjectAddress(KIND, "", name))
            assert record is not None, f"{name} was acknowledged at {rev} and is lost"
            assert record.rev >= rev
            if record.rev == rev:
                assert record.object["value"] == step
        history = [change.rev for change in store._changes_in_table(KIND, None, since=store.compacted)]
        assert history == list(range(store.compacted + 1, store.revision + 1)), "a resumed watch would have a gap"
        await store.close()


async def test_a_torn_log_opens_with_a_prefix_of_its_history(tmp_path: Path) -> None:
    """A power cut may leave any prefix of the write-ahead log; never something that was not written."""
    source = tmp_path / "source"
    source.mkdir()
    store = Store(source / "state.db", durable=True)
    written: dict[int, tuple[str, int]] = {}
    for step in range(60):
        name = f"n{step % 9}"
        written[await put(store, name, step)] = (name, step)
    wal = (source / "state.db-wal").read_bytes()
    rng = random.Random(11)
    for trial in range(25):
        copy = tmp_path / f"copy{trial}"
        copy.mkdir()
        shutil.copy(source / "state.db", copy / "state.db")
        (copy / "state.db-wal").write_bytes(wal[: rng.randint(0, len(wal))])
        torn = Store(copy / "state.db")
        expected: dict[str, tuple[int, int]] = {}
        for rev in range(1, torn.revision + 1):
            name, step = written[rev]
            expected[name] = (rev, step)
        assert {r.address.name: (r.rev, r.object["value"]) for r in torn.list(KIND)} == expected
        await put(torn, "after", 1)
        await torn.close()
    await store.close()


async def test_a_full_disk_refuses_writes_keeps_reads_and_recovers(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    first = await put(store, "kept", 1)
    pages = store._log._db.execute("PRAGMA page_count").fetchone()[0]
    store._log._db.execute(f"PRAGMA max_page_count = {pages + 2}")
    watch = store.watch(KIND, None, since=store.revision)
    results = await asyncio.gather(
        *(put(store, f"big{n}", size=100_000) for n in range(3)), put(store, "kept", 2, size=50_000),
        return_exceptions=True,
    )  # fmt: skip
    assert all(isinstance(result, errors.ServiceUnavailable) for result in results), results
    assert "full" in str(results[0])
    kept = store.get(ObjectAddress(KIND, "", "kept"))
    assert kept is not None
    assert (kept.rev, kept.object["value"]) == (first, 1)
    store._log._db.execute("PRAGMA max_page_count = 1000000")
    again = await put(store, "kept", 3)
    batch = await watch.next_batch(1.0)
    assert batch is not None
    assert [(change.rev, change.op) for change in batch] == [(again, Op.UPDATE)], "failed writes must not be watched"
    await store.close()


async def test_a_directory_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await Store(path).close()
    database = sqlite3.connect(path)
    database.executescript(f"PRAGMA journal_mode = DELETE; DROP TABLE log; UPDATE meta SET value = {FORMAT + 1}")
    database.close()
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"newer release.*upgrade paddlecloud"):
        Store(path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["state.db"]


def test_a_place_that_cannot_hold_a_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot open .*missing"):
        Store(tmp_path / "missing" / "state.db")


async def test_a_slow_watcher_is_cut_off_and_can_resume_without_a_gap(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    slow = store.watch(KIND, None, since=0)
    slow.LIMIT = 10
    for step in range(50):
        await put(store, "n", step)
    assert await slow.next_batch(1.0) == [], "nothing is kept for it"
    rest = await store.watch(KIND, None, since=0).next_batch(1.0)
    assert rest is not None
    assert [change.rev for change in rest] == list(range(1, 51))
    await store.close()


async def test_a_watch_resumes_from_the_table_when_the_ring_is_gone(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    for step in range(20):
        await put(store, f"n{step % 3}", step)
    await store.close()
    store = Store(tmp_path / "state.db")
    batch = await store.watch(KIND, None, since=5).next_batch(1.0)
    assert batch is not None
    assert [change.rev for change in batch] == list(range(6, 21))
    for change in batch:
        assert change.previous is not None
        assert change.previous.object["value"] == change.record.object["value"] - 3, "the state before is known"
    await store.close()


async def test_compaction_answers_old_watches_with_expired_and_shrinks_the_table(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db", retain=50)
    for step in range(300):
        await put(store, f"n{step % 5}", step)
    assert store.compacted >= 100
    with pytest.raises(errors.Expired):
        store.watch(KIND, None, since=1)
    rows = store._log._reader.execute("SELECT COUNT(*) FROM log").fetchone()[0]
    assert rows <= 5 + 2 * 50 + 1
    assert [r.object["value"] for r in store.list(KIND)] == [295, 296, 297, 298, 299]
    await store.close()
