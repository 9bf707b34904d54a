"""Logs on disk and back: exact bytes, rotation without loss of order, and following without polling."""

from __future__ import annotations

import asyncio
import os
import resource
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import PATIENCE
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.local.kubelet.pod.paths import PodPaths
from paddlecloud.local.kubelet.pod.pod_state import EXITED, ContainerRun
from paddlecloud.local.kubelet.pod.termination_message import termination_message
from paddlecloud.local.kubelet.shim.logfile import LogFile, format_chunk
from paddlecloud.local.kubelet.streams import logreader
from paddlecloud.local.kubelet.streams.inotify import Watch, _Instance
from paddlecloud.local.kubelet.streams.logreader import (
    TAIL,
    Formatter,
    LogOptions,
    Segment,
    _last_lines,
    _line_starts,
    open_segments,
    read_end,
    read_log,
)
from unit.local.kubelet.conftest import ShimHarness

NOON = parse_rfc3339("2026-11-15T12:00:00Z")


def read(path: Path, **options: object) -> str:
    async def whole() -> bytes:
        wanted = LogOptions(**options)  # type: ignore[arg-type]
        return b"".join([piece async for piece in read_log(path, wanted, pod_dir=path.parent, ended=lambda: True)])

    return asyncio.run(whole()).decode()


@given(st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\r", b"\n")), max_size=8))
def test_what_was_written_is_read_back_byte_for_byte(chunks: list[bytes]) -> None:
    text = b"".join(format_chunk(b"stdout", chunk, NOON) for chunk in chunks if chunk)
    assert Formatter(LogOptions()).format(text.split(b"\n")[:-1]) == b"".join(chunks)


def test_lines_carry_time_and_stream_in_the_format_of_container_runtimes() -> None:
    assert format_chunk(b"stderr", b"a\nb", NOON + 0.25) == (
        b"2026-11-15T12:00:00.250000000Z stderr F a\n2026-11-15T12:00:00.250000000Z stderr P b\n"
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "c" / "0.log"
    file = LogFile(str(path))
    for number in range(1, 6):
        file.write(format_chunk(b"stderr" if number == 3 else b"stdout", b"line %d\n" % number, NOON + number))
    file.close()
    return path


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"tail": 2}, [4, 5]),
        ({"tail": 0}, []),
        ({"tail": 99}, [1, 2, 3, 4, 5]),
        ({"since": NOON + 4}, [4, 5]),
        ({"since": NOON + 2, "tail": 1}, [5]),
        ({"stream": "Stderr"}, [3]),
    ],
)
def test_what_the_options_choose(log: Path, options: dict[str, object], numbers: list[int]) -> None:
    assert read(log, **options) == "".join(f"line {number}\n" for number in numbers)


def test_timestamps_and_byte_limits(log: Path) -> None:
    assert read(log, timestamps=True, tail=1) == "2026-11-15T12:00:05.000000000Z line 5\n"
    assert read(log, limit_bytes=9) == "line 1\nli"


def test_rotation_keeps_the_newest_and_the_order(tmp_path: Path) -> None:
    path = tmp_path / "c" / "0.log"
    file = LogFile(str(path), max_bytes=1000, max_files=3)
    for number in range(200):
        file.write(format_chunk(b"stdout", b"%d\n" % number, NOON))
    file.close()
    kept = [int(line) for line in read(path).split()]
    assert kept == list(range(kept[0], 200))
    assert len(kept) > 50
    assert sum(piece.stat().st_size for piece in path.parent.iterdir()) <= 3000
    assert [int(line) for line in read(path, tail=40).split()] == list(range(160, 200))


@pytest.mark.parametrize("room", [0, 10, 45, 46, 47, 48, 49, 50, 51, 60, 96, 97, 98])
def test_a_full_disk_costs_lines_and_the_log_says_how_much(tmp_path: Path, room: int) -> None:
    """Wherever in a line the disk took no more."""
    path = tmp_path / "c" / "0.log"
    file = LogFile(str(path))
    lines = [format_chunk(b"stdout", b"line %d\n" % number, NOON) for number in range(4)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        for line in lines[:3]:
            file.write(line)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    file.write(lines[3])
    file.close()
    lost = sum(map(len, lines[:3])) - room
    whole, _, rest = read(path).rpartition(f"[{lost} bytes of output are missing: the disk was full]\n")
    assert rest == "line 3\n"
    assert "line 0\nline 1\nline 2\n".startswith(whole.rstrip("\n"))


async def collect(stream: AsyncIterator[bytes], into: list[bytes]) -> None:
    into.extend([data async for data in stream])


async def test_following_goes_through_rotations_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "c" / "0.log"
    done = False
    file = LogFile(str(path), max_bytes=500, max_files=50)
    seen: list[bytes] = []
    stream = read_log(path, LogOptions(follow=True), pod_dir=tmp_path, ended=lambda: done)
    reading = asyncio.create_task(collect(stream, seen))
    for number in range(100):
        file.write(format_chunk(b"stdout", b"%d\n" % number, NOON))
        if number % 10 == 0:
            await asyncio.sleep(0)
    file.close()
    done = True
    (tmp_path / "status.json").write_text("{}")  # what a shim does when a container ended
    await asyncio.wait_for(reading, PATIENCE)
    assert b"".join(seen).split() == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("tail", [None, 30_000], ids=["all", "tail"])
async def test_a_log_that_grows_as_fast_as_it_is_read_ends_where_it_was_when_asked(
    tmp_path: Path, tail: int | None
) -> None:
    path = tmp_path / "c" / "0.log"
    file = LogFile(str(path), max_bytes=1 << 20, max_files=50)
    more = format_chunk(b"stdout", b"more\n" * 20_000, NOON)
    file.write(format_chunk(b"stdout", b"line\n" * 30_000, NOON))
    lines = 0
    async for data in read_log(path, LogOptions(tail=tail), pod_dir=tmp_path, ended=lambda: False):
        file.write(more)
        lines += data.count(b"\n")
        assert b"more" not in data
    file.close()
    assert lines == 30_000


async def _write_numbers(file: LogFile, until: threading.Event) -> None:
    def write() -> None:
        number = 0
        while not until.is_set():
            file.write(format_chunk(b"stdout", b"%d\n" % number, NOON))
            number += 1

    await asyncio.to_thread(write)


async def test_rotations_neither_break_nor_reorder_what_is_read_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "c" / "0.log"
    stop = threading.Event()
    file = LogFile(str(path), max_bytes=200, max_files=4)
    writing = asyncio.create_task(_write_numbers(file, stop))
    try:
        for _ in range(50):
            for options in (LogOptions(), LogOptions(tail=3)):
                read_now = [data async for data in read_log(path, options, pod_dir=tmp_path, ended=lambda: False)]
                numbers = [int(line) for line in b"".join(read_now).split()]
                assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
            read_end(path, 100)
    finally:
        stop.set()
        await writing
        file.close()


async def test_a_follower_is_not_lost_in_rotations(tmp_path: Path) -> None:
    path = tmp_path / "c" / "0.log"
    stop = threading.Event()
    file = LogFile(str(path), max_bytes=2000, max_files=100)
    writing = asyncio.create_task(_write_numbers(file, stop))
    seen = b""
    try:
        async for data in read_log(path, LogOptions(follow=True), pod_dir=tmp_path, ended=lambda: False):
            seen += data
            if seen.count(b"\n") > 3000:
                break
    finally:
        stop.set()
        await writing
        file.close()
    numbers = [int(line) for line in seen.split()]
    assert numbers == sorted(set(numbers))


def test_given_two_rotations_while_files_are_opened_then_their_order_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c" / "0.log"
    file = LogFile(str(path), max_bytes=40, max_files=10)  # a line each

    def write(*numbers: int) -> None:
        for number in numbers:
            file.write(format_chunk(b"stdout", b"%d\n" % number, NOON))

    write(0, 1, 2, 3)
    opened, to_write = os.open, [(4, 5), (6,), ()]

    def open_slowly(name: Path | str, *how: int) -> int:
        fd = opened(name, *how)
        if name == path and to_write:
            write(*to_write.pop(0))
        return fd

    monkeypatch.setattr(os, "open", open_slowly)
    segments = open_segments(path)
    file.close()
    read = [os.read(segment.fd, 100).split()[-1] for segment in segments]
    for segment in segments:
        os.close(segment.fd)
    assert read == [b"0", b"1", b"2", b"3", b"4", b"5"]


async def test_a_follower_that_comes_first_waits_for_the_container(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "c" / "0.log"
    path.parent.parent.mkdir()
    seen: list[bytes] = []
    done = False
    stream = read_log(path, LogOptions(follow=True), pod_dir=tmp_path, ended=lambda: done)
    reading = asyncio.create_task(collect(stream, seen))
    await asyncio.sleep(0)
    file = LogFile(str(path))
    file.write(format_chunk(b"stdout", b"late\n", NOON))
    file.close()
    done = True
    (tmp_path / "status.json").write_text("{}")
    await asyncio.wait_for(reading, PATIENCE)
    assert seen == [b"late\n"]


async def test_who_follows_from_now_on_misses_nothing_of_it(log: Path) -> None:
    loop = asyncio.get_running_loop()
    busy = [loop.run_in_executor(None, time.sleep, 0.2) for _ in range(64)]  # no thread is free to look for a place
    done = False
    stream = read_log(log, LogOptions(follow=True, tail=0), pod_dir=log.parents[1], ended=lambda: done)
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    file = LogFile(str(log))
    file.write(format_chunk(b"stdout", b"now\n", NOON))
    file.close()
    assert await asyncio.wait_for(first, PATIENCE) == b"now\n"
    done = True
    await stream.aclose()
    await asyncio.gather(*busy)


async def test_a_flood_of_output_is_bounded_on_disk_and_does_not_stop_the_container(shims: ShimHarness) -> None:
    root = shims.pod_dir()
    runtime = await shims.spawn(root)
    spec = shims.container(root, "yes a-line-of-some-length | head -c 30000000; echo last")
    await runtime.start(spec._replace(log_max_bytes=1_000_000, log_max_files=2))
    assert (await shims.exited(runtime))["exit_code"] == 0
    path = root / "logs" / "main" / "0.log"
    assert sum(piece.stat().st_size for piece in path.parent.iterdir()) < 3_000_000
    assert (await asyncio.to_thread(read, path, tail=1)).endswith("last\n")


async def test_all_who_follow_share_one_inotify_instance_and_each_notices_its_own(tmp_path: Path) -> None:
    def instances() -> int:
        return sum(
            os.readlink(entry) == "anon_inode:inotify"
            for entry in Path("/proc/self/fd").iterdir()
            if entry.is_symlink()
        )

    before = instances()
    folders = [tmp_path / f"{number % 100}" for number in range(300)]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    watches = [Watch(str(folder)) for folder in folders]
    try:
        assert instances() - before == 1
        (folders[7] / "new").write_text("x")
        await asyncio.wait_for(asyncio.gather(watches[7].wait(), watches[107].wait()), PATIENCE)
        quiet = asyncio.ensure_future(watches[8].wait())
        (folders[9] / "new").write_text("x")
        await asyncio.wait_for(watches[9].wait(), PATIENCE)
        assert not quiet.done()
        watches.pop(109).close()
        (folders[9] / "newer").write_text("x")
        await asyncio.wait_for(watches[9].wait(), PATIENCE)
        quiet.cancel()
    finally:
        for watch in watches:
            watch.close()
    assert instances() == before


async def test_where_the_user_has_no_more_instances_a_log_is_followed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Instance, "shared", lambda: None)
    path = tmp_path / "c" / "0.log"
    file = LogFile(str(path))
    done = False
    seen: list[bytes] = []
    stream = read_log(path, LogOptions(follow=True), pod_dir=tmp_path, ended=lambda: done)
    reading = asyncio.create_task(collect(stream, seen))
    await asyncio.sleep(0)
    file.write(format_chunk(b"stdout", b"later\n", NOON))
    file.close()
    done = True
    await asyncio.wait_for(reading, PATIENCE)
    assert seen == [b"later\n"]


async def test_a_log_of_which_no_line_is_asked_for_holds_up_nobody(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(format_chunk(b"stdout", b"x\n" * 500_000, NOON))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    for options in (LogOptions(since=NOON + 1), LogOptions(tail=499_999, since=NOON + 1)):
        turns = 0
        assert [data async for data in read_log(path, options, pod_dir=tmp_path, ended=lambda: True)] == []
        assert turns > 2
    beside.cancel()


def test_the_end_of_a_log_is_read_from_its_end_over_rotated_files(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    lines = [format_chunk(b"stdout", b"line %d\n" % number, NOON) for number in range(10)]
    path.with_name("0.log.1").write_bytes(b"".join(lines[:6]))
    path.write_bytes(b"".join(lines[6:]))
    assert read_end(path, 1 << 20).decode() == read(path)
    assert read_end(path, 7 * len(lines[0])).decode() == "".join(f"line {number}\n" for number in range(3, 10))
    assert read_end(path, 3 * len(lines[0]) + 5).decode() == "".join(f"line {number}\n" for number in range(7, 10))
    assert read_end(tmp_path / "none.log", 100) == b""


def test_a_message_from_a_long_log_reads_only_its_end(tmp_path: Path) -> None:
    paths = PodPaths(tmp_path)
    log = paths.log("c", 0)
    log.parent.mkdir(parents=True)
    with log.open("wb") as file:
        file.truncate(1 << 40)  # a sparse file: more than anybody could read
        file.seek(0, os.SEEK_END)
        file.write(b"\n")
        for number in range(100):
            file.write(format_chunk(b"stdout", b"line %d\n" % number, NOON))
        file.write(format_chunk(b"stdout", b"ValueError: no\n", NOON))
    run = ContainerRun(0, EXITED, created=NOON, started=NOON, finished=NOON, exit_code=1)
    container = {"name": "c", "terminationMessagePolicy": "FallbackToLogsOnError"}
    message = termination_message(container, run, paths)
    assert message.splitlines() == [*(f"line {number}" for number in range(21, 100)), "ValueError: no"]
    log.write_bytes(b"".join(format_chunk(b"stdout", b"a" * 60_000, NOON) for _ in range(20)))
    assert termination_message(container, run, paths) == "a" * 2048, "one long line, of which the end is shown"


@pytest.mark.parametrize("following", [True, False])
async def test_very_many_readers_of_one_namespace_leave_the_event_loop_to_others(
    tmp_path: Path, following: bool
) -> None:
    path = tmp_path / "c" / "0.log"
    file = LogFile(str(path), max_bytes=1 << 30, max_files=2)
    file.write(format_chunk(b"stdout", b"a line of the log\n" * 100_000, NOON))
    file.close()
    turn = asyncio.Lock()
    options = LogOptions(follow=following)

    async def read_all() -> int:
        chunks = read_log(path, options, pod_dir=tmp_path, ended=lambda: True, turn=turn)
        return sum([len(data) async for data in chunks])

    readers = [asyncio.ensure_future(read_all()) for _ in range(20)]
    longest = 0.0
    while not all(reader.done() for reader in readers):
        began = time.thread_time()
        await asyncio.sleep(0)
        longest = max(longest, time.thread_time() - began)
    assert {reader.result() for reader in readers} == {18 * 100_000}
    assert longest < 0.04, "seconds of CPU time in one round of the event loop"


@pytest.mark.parametrize("count", [1, 200])
def test_for_the_last_lines_of_a_long_log_its_end_is_read(
    tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c" / "0.log"
    file = LogFile(str(path), max_bytes=1 << 30, max_files=2)
    for number in range(0, 100_000, 1000):
        text = b"".join(b"line %d\n" % line for line in range(number, number + 1000))
        file.write(format_chunk(b"stdout", text, NOON))
    file.close()
    asked = []
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: asked.append(size) or whole(fd, size, at))
    lines = read(path, tail=count).splitlines()
    assert lines == [f"line {number}" for number in range(100_000 - count, 100_000)]
    assert sum(asked) <= TAIL


@given(st.lists(st.tuples(st.sampled_from([b"stdout", b"stderr"]), st.binary(max_size=12)), max_size=12), st.data())
def test_a_tail_is_the_end_of_the_whole_wherever_it_is_looked_for(
    chunks: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    """Pieces of one line count as one, whatever part of the file was read first."""
    text = b"".join(format_chunk(stream, chunk.replace(b"\r", b"\n"), NOON) for stream, chunk in chunks if chunk)
    count = data.draw(st.integers(1, 12))
    with tempfile.TemporaryFile() as file:
        file.write(text)
        file.flush()
        segment = Segment(file.fileno(), 0, len(text))
        everything = _line_starts(segment, 0)
        with patch.object(logreader, "TAIL", data.draw(st.integers(1, 200))):
            assert _last_lines(segment, count) == (everything[-count:][0], len(everything[-count:]))
