"""Syncs that overlap, and what a killed one left: each has its own folder for files that are not whole yet."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paddlecloud.cache.manifest import SampleManifest
from paddlecloud.cache.options import SyncOptions
from paddlecloud.cache.progress import Task
from paddlecloud.cache.sync.copier import Copier
from paddlecloud.storage.sources import Entry
from unit.cache.nuwa import tree


class Halting:
    """A source of one file, whose second half comes when `go_on` is set."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.half, self.go_on = threading.Event(), threading.Event()

    def entries(self, after: str = "") -> Iterator[Entry]:
        yield Entry(self._name, 2, 1_700_000_000)

    def read(self, entry: Entry) -> Iterator[Any]:
        yield b"1"
        self.half.set()
        assert self.go_on.wait(60)
        yield b"2"

    def delete(self, entry: Entry) -> None: ...


def copier(source: Halting, data: Path, state: Path) -> Copier:
    return Copier(source, str(data), "", SyncOptions(source="s3://b/x", destination=""), SampleManifest(state), Task())


def test_a_sync_that_ends_leaves_the_unfinished_files_of_another_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    slow, quick = Halting("slow.txt"), Halting("quick.txt")
    quick.go_on.set()
    errors: list[BaseException] = []

    def run_slow() -> None:
        try:
            copier(slow, data, tmp_path / "slow.db").run()
        except BaseException as error:
            errors.append(error)

    running = threading.Thread(target=run_slow)
    running.start()
    assert slow.half.wait(60)
    copier(quick, data, tmp_path / "quick.db").run()
    slow.go_on.set()
    running.join(60)
    assert not errors
    assert tree(data) == {"slow.txt": b"12", "quick.txt": b"12"}
    assert not (data / ".paddlecloud").exists()


def test_what_a_killed_sync_left_is_deleted_by_the_next(tmp_path: Path) -> None:
    data = tmp_path / "data"
    left = data / ".paddlecloud" / "unfinished"
    (left / "0123").mkdir(parents=True)
    (left / "0123" / "77").write_bytes(b"half")
    (left / "78").write_bytes(b"of an earlier release")
    source = Halting("a.txt")
    source.go_on.set()
    copier(source, data, tmp_path / "m.db").run()
    assert not (data / ".paddlecloud").exists()
