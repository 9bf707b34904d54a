"""Reading through a node's cache: what is there, what is not, what goes wrong, and what is told of it."""

from __future__ import annotations

import http.server
import logging
import multiprocessing
import os
import pickle
import shutil
import subprocess
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import need, until
from paddlecloud.cache.plan.sampler import batches, rank_reads
from paddlecloud.data import Files
from paddlecloud.data.origin import Folder, is_remote
from paddlecloud.data.peers import Peers
from paddlecloud.data.place import Place
from tools.ports import free_ports

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")

COUNT = 64
SIZE = 1000


class Sampler:
    """What `follow` looks at in Paddle's DistributedBatchSampler."""

    batch_size, shuffle, drop_last = 8, True, False

    def __init__(self, *, nranks: int = 1, local_rank: int = 0, shuffle: bool = True) -> None:
        self.nranks, self.local_rank, self.shuffle = nranks, local_rank, shuffle
        self.epoch = 0

    def __iter__(self) -> Iterator[list[int]]:
        ranks = {"ranks": self.nranks, "rank": self.local_rank, "shuffle": self.shuffle}
        order = rank_reads(COUNT, batch_size=self.batch_size, epoch=self.epoch, **ranks)  # type: ignore[arg-type]
        self.epoch += self.shuffle
        yield from batches(order, self.batch_size)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "images").mkdir(parents=True)
    for number in range(COUNT):
        (folder / "images" / f"{number:03}.jpg").write_bytes(content(number))
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def content(number: int) -> bytes:
    return bytes([number]) * (SIZE + number)


def paths() -> list[str]:
    return [f"images/{number:03}.jpg" for number in range(COUNT)]


def cached(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.glob("images/*"))


def fork(work: Callable[[], bool]) -> int:
    """Another process, as a loader's worker or another rank; ends well if its work says so."""
    child = os.fork()
    if child == 0:
        done = False
        try:
            done = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0 if done else 1)
    return child


def used(cache: Path) -> int:
    total = 0
    for path in cache.glob("images/*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            pass  # evicted meanwhile
    return total


def train(files: Files, sampler: Sampler, cache: Path, *, epochs: int, quota: int | None = None) -> None:
    """Read epoch by epoch; before each batch, training goes on long enough for the keeper to bring it."""

    def loader() -> Iterator[list[bytes]]:
        for batch in sampler:
            until(lambda batch=batch: all((cache / files[index]).exists() for index in batch), every=0.005)
            if quota is not None:
                assert used(cache) <= quota + 4 * COUNT, "beyond it only what four arrivals differ from the usual size"
            yield [files.read(index) for index in batch]

    for _ in range(epochs):
        for _batch in files.watch(loader()):
            pass


# Reading


def test_without_a_cache_files_are_read_where_they_lie(data: Path) -> None:
    files = Files(paths(), data=str(data))
    files.follow(Sampler(), epochs=3)
    assert [files.read(number) for number in (5, 0)] == [content(5), content(0)]
    figures = files.figures()[0]
    assert (figures.hits, figures.misses) == (0, 0), "there is no telling"


def test_what_is_cached_is_a_hit_and_the_rest_is_read_from_its_origin(data: Path, cache: Path) -> None:
    (cache / "images").mkdir()
    (cache / "images" / "003.jpg").write_bytes(content(3))
    (data / "images" / "003.jpg").unlink()
    files = Files(paths(), data=str(data), cache=str(cache))
    assert [files.read(number) for number in (3, 4, -1)] == [content(3), content(4), content(63)]
    assert (files.figures()[0].hits, files.figures()[0].misses) == (1, 2)
    assert files.figures()[0].stall_seconds > 0, "nobody watches the loop: the readers' time counts"


def test_a_cache_may_have_several_folders(data: Path, tmp_path: Path) -> None:
    (tmp_path / "ssd" / "images").mkdir(parents=True)
    for number in range(10):
        (tmp_path / "ssd" / "images" / f"{number:03}.jpg").write_bytes(content(number))
    sampler, memory = Sampler(), tmp_path / "mem"
    files = Files(paths(), data=str(data), cache=f"{memory}:{tmp_path / 'ssd'}")
    files.follow(sampler, epochs=1)
    until(lambda: len(cached(memory)) == COUNT - 10)
    for batch in sampler:
        assert [files.read(index) for index in batch] == [content(index) for index in batch]
    assert (files.figures()[0].hits, files.figures()[0].misses) == (COUNT, 0)


def test_copies_look_like_their_originals(data: Path, cache: Path) -> None:
    """Cache servers judge a copy by size and time."""
    files = Files(paths(), data=str(data), cache=str(cache))
    files.follow(Sampler(), epochs=1)
    until(lambda: len(cached(cache)) == COUNT)
    for path in paths():
        assert (cache / path).stat().st_mtime_ns == (data / path).stat().st_mtime_ns


def test_places_come_from_the_environment(data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLECLOUD_DATA_DIR", str(data))
    monkeypatch.setenv("PADDLECLOUD_CACHE_DIR", str(cache))
    files = Files(paths())
    assert files.read(1) == content(1)
    assert files.figures()[0].misses == 1


def test_lists_label_files_and_folders_give_the_order(data: Path) -> None:
    (data / "train.txt").write_text("images/007.jpg 3\nimages/001.jpg 0\n\n")
    listed = Files.listed("train.txt", data=str(data))
    assert [listed[number] for number in range(len(listed))] == ["images/007.jpg", "images/001.jpg"]
    (data / ".hidden").mkdir()
    (data / ".hidden" / "x").touch()
    walked = Files.walk("images", data=str(data))
    assert [walked[number] for number in range(len(walked))] == paths()


def test_absolute_paths_of_the_set_are_cached_and_those_outside_are_not(
    data: Path, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside.jpg").write_bytes(b"outside")
    names = [str(data / "images" / "001.jpg"), "../outside.jpg", str(tmp_path / "outside.jpg")]
    files = Files(names, data=str(data), cache=str(cache))
    assert files[0] == "images/001.jpg"
    assert [files.read(number) for number in range(3)] == [content(1), b"outside", b"outside"]


def test_a_list_that_leads_out_of_the_set_harms_nothing(data: Path, cache: Path, tmp_path: Path) -> None:
    """What it names is read, and neither replaced by copies nor evicted."""
    victim = tmp_path / "victim.jpg"
    victim.write_bytes(b"the user's own")
    sampler = Sampler()
    files = Files(["../victim.jpg", str(victim), *paths()[2:]], data=str(data), cache=str(cache), quota=20 * SIZE)
    files.follow(sampler, epochs=2)
    for _ in range(2):
        for batch in sampler:
            inside = [index for index in batch if index > 1]
            until(lambda inside=inside: all((cache / files[index]).exists() for index in inside), every=0.01)
            found = [files.read(index) for index in batch]
            assert found == [content(index) if index > 1 else b"the user's own" for index in batch]
    assert victim.read_bytes() == b"the user's own"


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", ".paddlecloud/keeper", "./.paddlecloud/keeper"])
def test_nothing_outside_of_the_cache_is_touched(cache: Path, path: str) -> None:
    place = Place(str(cache / "inner"))
    lock = place.keeper()
    with pytest.raises(ValueError, match="out of the cache"), place.arriving(path) as draft:
        Path(draft).write_text("x")
    with pytest.raises(ValueError, match="out of the cache"):
        place.drop(path)
    assert place.read(path) is None
    assert lock is not None


def test_a_file_that_is_nowhere_fails_as_it_always_would(data: Path, cache: Path) -> None:
    files = Files(["images/none.jpg"], data=str(data), cache=str(cache))
    with pytest.raises(FileNotFoundError, match=r"none\.jpg"):
        files.read(0)


def test_a_dataset_sent_to_a_worker_still_reads(data: Path, cache: Path) -> None:
    copy = pickle.loads(pickle.dumps(Files(paths(), data=str(data), cache=str(cache))))
    assert copy.read(9) == content(9)
    assert copy.figures() == {}


def test_forked_workers_are_counted_in_the_main_process(data: Path, cache: Path) -> None:
    files = Files(paths(), data=str(data), cache=str(cache))
    for _ in range(3):
        child = fork(lambda: all(files.read(number) for number in range(COUNT)))
        assert os.waitpid(child, 0)[1] == 0
    assert files.figures()[0].misses == 3 * COUNT


# Fetching ahead


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
        lock = Place(str(cache)).keeper()
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
    waits, wait = threading.Event(), Place.await_incoming

    def await_incoming(place: Place, path: str) -> None:
        waits.set()
        wait(place, path)

    monkeypatch.setattr(Place, "await_incoming", await_incoming)
    place = Place(str(cache))
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
    place = Place(str(cache))
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


# A server as origin


class _Server(http.server.ThreadingHTTPServer):
    asked = 0


@pytest.fixture
def server(data: Path) -> Iterator[_Server]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(data))

        def do_GET(self) -> None:
            server.asked += 1
            if server.asked % 5 == 0:
                self.close_connection = True  # as servers do with connections they tire of
            super().do_GET()

        def log_message(self, *_: Any) -> None:
            """Tests are quiet."""

    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_server_can_be_the_origin(server: _Server, data: Path, cache: Path) -> None:
    (data / "images" / "with space.jpg").write_bytes(b"spaced")
    url = f"http://127.0.0.1:{server.server_address[1]}"
    sampler = Sampler()
    files = Files([*paths()[:-1], "images/with space.jpg"], data=url, cache=str(cache))
    assert files.read(COUNT - 1) == b"spaced"
    files.follow(sampler, epochs=2)
    train(files, sampler, cache, epochs=2)
    assert server.asked == COUNT + 1, "each file crossed the link once, and one a second time"
    with pytest.raises(OSError, match="404"):
        Files(["none"], data=url).read(0)


# Nodes that pass samples on


def test_nodes_hand_samples_over_and_the_origin_is_asked_once(
    server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of the two caches holds the set, both together do; every sample crosses the link once.

    The environment is that of a job whose controller has seen it.
    """
    url = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:36000,127.0.0.2:36000")
    (port,) = free_ports("127.0.0.1", 1)
    monkeypatch.setenv("PADDLECLOUD_PEER_PORT", str(port))
    step = multiprocessing.get_context("fork").Barrier(2)

    def rank(number: int) -> bool:
        sampler, cache = Sampler(nranks=2, local_rank=number), tmp_path / f"node-{number}"
        files = Files(paths(), data=url, cache=str(cache), quota=(COUNT - 8) * (SIZE + COUNT // 2))
        files.follow(sampler, epochs=5, threads=2)

        def loader() -> Iterator[list[bytes]]:
            for batch in sampler:
                there = lambda batch=batch: all((cache / files[index]).exists() for index in batch)  # noqa: E731
                until(there, every=0.005)
                step.wait(20)
                yield [files.read(index) for index in batch]

        for _ in range(5):
            for batch in files.watch(loader()):
                assert all(len(part) >= SIZE for part in batch)
        step.wait(20)
        return sum(figures.misses for figures in files.figures().values()) == 0

    child = fork(lambda: rank(1))
    assert rank(0)
    assert os.waitpid(child, 0)[1] == 0
    assert server.asked <= COUNT + 4, f"{server.asked} requests for {COUNT} samples in five epochs"


def test_a_cache_is_served_to_those_who_have_the_token_and_nothing_else_is(data: Path, tmp_path: Path) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    (tmp_path / "secret").write_text("not of the set")
    peers = Peers([f"127.0.0.1:{port}"], 0, "s3cret")
    taken: list[int] = []
    peers.serve(Place(str(data)), paths(), taken.append)
    copy = str(tmp_path / "copy")
    assert peers.copy(0, "images/007.jpg", copy) == len(content(7))
    assert Path(copy).read_bytes() == content(7)
    for other in ("../secret", "images/../../secret", ".paddlecloud/keeper", "images/none.jpg"):
        assert peers.copy(0, other, copy) is None
    assert Peers([f"127.0.0.1:{port}"], 0, "guess").copy(0, "images/008.jpg", copy) is None
    until(lambda: taken == [7], every=0.01)


def test_peers_beyond_the_machine_need_a_token() -> None:
    with pytest.raises(ValueError, match="token"):
        Peers(["10.0.0.1:36000", "10.0.0.2:36000"], 0, "")


def test_a_peer_that_does_not_answer_is_left_alone_for_a_while(data: Path, tmp_path: Path) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    peers = Peers([f"127.0.0.1:{port}"], 0, "")
    assert peers.copy(0, "images/001.jpg", str(tmp_path / "copy")) is None
    peers.serve(Place(str(data)), paths(), lambda _: None)
    assert peers.copy(0, "images/001.jpg", str(tmp_path / "copy")) is None, "it is not asked before it had a rest"
