"""Fetching ahead along the sampler's order: who does it, within which quota, and what may go wrong."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from harness import need, until
from paddlecloud.data import Files
from paddlecloud.data.cache_folders import CacheFolders
from paddlecloud.data.origin import Folder, is_remote
from unit.data.samples import COUNT, SIZE, Sampler, cached, content, fork, paths, train

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def test_a_cache_for_everything_makes_every_epoch_local(data: Path, cache: Path) -> None:
    sampler = Sampler()
    files = Files(paths(), data=str(data), cache=str(cache))
    files.follow(sampler, epochs=3)
    train(files, sampler, cache, epochs=3)
    found = files.figures()
    assert [(epoch, found[epoch].hits, found[epoch].misses) for epoch in sorted(found)] == [
        (epoch, COUNT, 0) for epoch in range(3)
    ]
    assert all(figures.stall_seconds >= 0 for figures in files.figures().values())


def test_a_small_cache_stays_within_its_quota_and_ahead_of_the_reader(data: Path, cache: Path) -> None:
    sampler, quota = Sampler(), 26 * (SIZE + COUNT)
    files = Files(paths(), data=str(data), cache=str(cache), quota=quota)
    files.follow(sampler, epochs=4, threads=2)
    train(files, sampler, cache, epochs=4, quota=quota)
    assert [(figures.hits, figures.misses) for figures in files.figures().values()] == [(COUNT, 0)] * 4


def test_what_a_warm_up_brought_is_kept_and_what_exceeds_the_quota_goes(data: Path, cache: Path) -> None:
    (cache / "images").mkdir()
    for number in range(COUNT):
        (cache / "images" / f"{number:03}.jpg").write_bytes(content(number))
    sampler = Sampler()
    files = Files(paths(), data=str(data), cache=str(cache), quota=32 * (SIZE + COUNT))
    files.follow(sampler, epochs=1)
    until(lambda: len(cached(cache)) <= 33)
    soonest = [files[index] for batch in Sampler() for index in batch][:8]
    assert {Path(path).name for path in soonest} <= set(cached(cache)), "those read first stay"


def test_two_ranks_share_a_cache_and_one_keeper(data: Path, cache: Path, tmp_path: Path) -> None:
    """The second rank's process dies; the first goes on alone, and the other way round."""
    ours = Sampler(nranks=2, local_rank=0)
    files = Files(paths(), data=str(data), cache=str(cache))
    files.follow(ours, epochs=2)
    train(files, ours, cache, epochs=1)

    def another() -> bool:
        theirs = Sampler(nranks=2, local_rank=1)
        other = Files(paths(), data=str(data), cache=str(cache))
        other.follow(theirs, epochs=2)
        train(other, theirs, cache, epochs=2)
        return sum(figures.misses for figures in other.figures().values()) == 0

    child = fork(another)
    assert os.waitpid(child, 0)[1] == 0, "a rank that is not the keeper finds its samples too"
    train(files, ours, cache, epochs=1)
    assert sum(figures.misses for figures in files.figures().values()) == 0


def test_a_keeper_that_dies_is_followed_by_another(data: Path, cache: Path) -> None:
    reading, writing = os.pipe()

    def keep() -> bool:
        lock = CacheFolders(str(cache)).keeper()
        os.write(writing, b"k" if lock else b"-")
        return threading.Event().wait(60)

    child = fork(keep)
    assert os.read(reading, 1) == b"k"
    (cache / ".paddlecloud" / "incoming" / "left-behind").touch()
    sampler = Sampler()
    files = Files(paths(), data=str(data), cache=str(cache))
    files.follow(sampler, epochs=1)
    assert files.read(0) == content(0), "meanwhile files are read where they lie"
    assert cached(cache) == []
    os.kill(child, 9)
    os.waitpid(child, 0)
    until(lambda: len(cached(cache)) == COUNT)
    assert list((cache / ".paddlecloud" / "incoming").iterdir()) == [], "what the dead one had begun is gone"


def test_a_reader_waits_for_what_is_on_its_way_rather_than_fetch_it_twice(
    data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, wait = threading.Event(), CacheFolders.await_incoming

    def await_incoming(place: CacheFolders, path: str) -> None:
        waits.set()
        wait(place, path)

    monkeypatch.setattr(CacheFolders, "await_incoming", await_incoming)
    place = CacheFolders(str(cache))
    lock = place.keeper()
    files = Files(paths(), data=str(data), cache=str(cache))
    found: list[bytes] = []
    with place.arriving("images/005.jpg") as draft:
        reader = threading.Thread(target=lambda: found.append(files.read(5)))
        reader.start()
        assert waits.wait(20)
        (data / "images" / "005.jpg").unlink()
        Path(draft).write_bytes(b"from the keeper")
    reader.join(20)
    assert found == [b"from the keeper"]
    assert files.figures()[0].misses == 1, "it was not there when it was wanted"
    assert lock is not None


# Where the mount is the cache

MOUNTS = r"""
/dev/vda / ext4 rw 0 0
JuiceFS:lake /mnt/lake fuse.juicefs rw 0 0
tmpfs /mnt/lake/scratch tmpfs rw 0 0
server:/x /mnt/with\040space nfs4 rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "remote"),
    [
        ("/mnt/lake", True),
        ("/mnt/lake/imagenet", True),
        ("/mnt/lake/scratch/x", False),
        ("/mnt/lakeside", False),
        ("/mnt/with space/x", True),
        ("/home", False),
    ],
)
def test_file_systems_that_come_over_a_network_are_known(folder: str, remote: bool) -> None:
    assert is_remote(folder, MOUNTS.strip()) is remote


def test_through_such_a_mount_the_next_batches_are_read_ahead(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddlecloud.data.files.is_remote", lambda folder: True)
    asked: list[str] = []
    read = Folder.read
    monkeypatch.setattr(Folder, "read", lambda self, path: asked.append(path) or read(self, path))
    monkeypatch.setattr("paddlecloud.data.ahead.WINDOW", 2)
    sampler = Sampler()
    files = Files(paths(), data=str(data))
    first = [files[index] for batch in Sampler() for index in batch][:16]
    files.follow(sampler, epochs=2, threads=1)
    until(lambda: len(asked) >= 16)
    assert asked == first, "two batches, before anybody asked"
    for epoch in range(2):
        for batch in files.watch(sampler):
            ahead = lambda batch=batch, times=2 * epoch + 1: all(asked.count(files[i]) >= times for i in batch)  # noqa: E731
            until(ahead, every=0.005)
            assert [files.read(index) for index in batch] == [content(index) for index in batch]
    assert sorted(asked) == sorted(4 * paths()), "in each epoch every sample once ahead and once by its reader"


# What goes wrong stays out of the training


def test_a_draft_nobody_writes_to_is_not_waited_for(data: Path, cache: Path) -> None:
    place = CacheFolders(str(cache))
    lock = place.keeper()
    draft = place._draft("images/005.jpg")
    Path(draft).touch()
    os.utime(draft, (1, 1))
    assert Files(paths(), data=str(data), cache=str(cache)).read(5) == content(5)
    assert lock is not None


def test_a_cache_that_cannot_be_written_is_read_past(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    sampler = Sampler()
    with caplog.at_level(logging.WARNING, "paddlecloud.data"):
        files = Files(paths(), data=str(data), cache=str(tmp_path / "file" / "cache"))
        files.follow(sampler, epochs=1)
        assert [files.read(index) for batch in sampler for index in batch]
        until(lambda: "read where they lie" in caplog.text)


def test_a_full_disk_is_used_as_far_as_it_goes(data: Path, cache: Path) -> None:
    """No quota, and a disk for some twenty of the samples."""
    need("root", have=os.getuid() == 0, hint="mounting a tmpfs takes root")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "none", str(cache)], capture_output=True)
    need("root", have=mounted.returncode == 0, hint=f"this machine mounts no tmpfs: {mounted.stderr.decode()}")
    try:
        free = shutil.disk_usage(cache).free
        sampler = Sampler()
        files = Files(paths(), data=str(data), cache=str(cache), quota=1 << 30)
        files.follow(sampler, epochs=2, threads=2)
        train(files, sampler, cache, epochs=2)
        assert sum(figures.misses for figures in files.figures().values()) == 0
        assert free < COUNT * 4096, "it could not hold them all"
    finally:
        subprocess.run(["umount", "-l", str(cache)], check=True)


def test_an_origin_that_fails_for_a_while_is_tried_again(data: Path, cache: Path) -> None:
    away = data.rename(data.with_name("away"))
    sampler = Sampler()
    files = Files(paths(), data=str(data), cache=str(cache))
    files.follow(sampler, epochs=2)
    until(lambda: (cache / ".paddlecloud" / "keeper").exists())
    with pytest.raises(FileNotFoundError):
        files.read(0)
    away.rename(data)
    for batch in sampler:
        assert [files.read(index) for index in batch] == [content(index) for index in batch]
    until(lambda: len(cached(cache)) == COUNT)


def test_a_program_that_reads_in_another_order_is_found_out(
    data: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sampler = Sampler(nranks=8)
    files = Files(paths(), data=str(data), cache=str(cache))
    with caplog.at_level(logging.WARNING, "paddlecloud.data"):
        files.follow(sampler, epochs=100)
        for _ in range(10):  # everything, where an eighth was planned
            for index in range(COUNT):
                assert files.read(index) == content(index)
        until(lambda: "another order" in caplog.text)


def test_a_sampler_that_cannot_be_planned_changes_nothing(
    data: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "paddlecloud.data"):
        files = Files(paths(), data=str(data), cache=str(cache))
        files.follow(object(), epochs=1)
    assert "no prefetching" in caplog.text
    assert files.read(1) == content(1)
