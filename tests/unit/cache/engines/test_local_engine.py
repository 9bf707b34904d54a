"""The local engine: levels and their quotas, who may go where, disks that are full, sets that change."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import need
from paddlecloud.api.folders import ANYWHERE, FolderRule
from paddlecloud.cache import nodecache
from paddlecloud.cache import options as options_
from paddlecloud.cache.engines.base import EngineSettings
from paddlecloud.cache.engines.local import LocalEngine
from paddlecloud.cache.errors import BadOptions, Cancelled, WorkFailed
from paddlecloud.cache.levels import Level, disks, parse_levels
from paddlecloud.cache.progress import Task
from paddlecloud.data.cache_folders import CacheFolders
from paddlecloud.storage.credentials import Credentials
from unit.cache.nuwa import tree

Engines = Callable[..., LocalEngine]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A set of ten files of 1,000 bytes that somebody put there."""
    folder = tmp_path / "data"
    (folder / "train").mkdir(parents=True)
    for number in range(10):
        (folder / "train" / f"{number}.jpg").write_bytes(bytes([number]) * 1000)
    return folder


@pytest.fixture
def engine(tmp_path: Path, data: Path) -> Iterator[Engines]:
    made = []

    def make(*levels: Level, partition: int = 0, name: str = "node", sources: FolderRule = ANYWHERE) -> LocalEngine:
        chosen = levels or (Level("SSD", (str(tmp_path / name),)),)
        state = tmp_path / f"{name}-state"
        made.append(LocalEngine(EngineSettings(str(data), chosen, state, partition, {}, sources)))
        return made[-1]

    yield make
    for each in made:
        each.close()


def level(tmp_path: Path, name: str, quota: int) -> Level:
    return Level("MEM", (str(tmp_path / name),), quota)


def do(engine: LocalEngine, kind: str, **raw: Any) -> Task:
    parsed, _ = options_.parse(kind, raw)
    engine.check(kind, parsed)
    task = Task()
    if isinstance(parsed, options_.SyncOptions):
        engine.sync(parsed, Credentials(), task)
    elif isinstance(parsed, options_.WarmupOptions):
        engine.warmup(parsed, task)
    else:
        (engine.rmr if kind == "rmr" else engine.clear)(parsed, task)
    return task


def test_every_level_keeps_to_its_quota_and_the_first_read_lies_fastest(tmp_path: Path, engine: Engines) -> None:
    node = engine(level(tmp_path, "mem", 3500), level(tmp_path, "disk", 7000))
    do(node, "warmup")
    assert list(tree(tmp_path / "mem")) == ["train/0.jpg", "train/1.jpg", "train/2.jpg"]
    assert len(tree(tmp_path / "disk")) == 7
    assert [each.usedBytes for each in node.status().levels] == [3000, 7000]


def test_a_quota_too_small_is_a_failure_that_says_so(tmp_path: Path, engine: Engines) -> None:
    node = engine(level(tmp_path, "mem", 4000))
    with pytest.raises(WorkFailed, match="6 of 10 files are not cached.*they need 9.8 KiB, the cache holds 3.9 KiB"):
        do(node, "warmup")
    assert len(tree(tmp_path / "mem")) == 4
    assert node.status().cachedBytes == 4000


def test_what_a_new_plan_does_not_need_makes_room(tmp_path: Path, engine: Engines, data: Path) -> None:
    (data / "val").mkdir()
    for number in range(3):
        (data / "val" / f"{number}.jpg").write_bytes(bytes(1000))
    node = engine(level(tmp_path, "mem", 5000))
    do(node, "warmup", paths=[f"{data}/val"])
    assert len(tree(tmp_path / "mem")) == 3
    list_file = data / "list.txt"
    list_file.write_text("train/7.jpg 3\n" + f"{data}/train/8.jpg\n" + "train/1.jpg 0\ntrain/2.jpg 1\n")
    do(node, "warmup", file=str(list_file))
    kept = set(tree(tmp_path / "mem"))
    assert {"train/7.jpg", "train/8.jpg", "train/1.jpg", "train/2.jpg"} <= kept
    assert len(kept) == 5, "room that nobody needs is given back to nobody"


def test_partitions_share_the_set_and_strategies_decide_how(tmp_path: Path, engine: Engines) -> None:
    for strategy in ("sequence", "random", "sampler"):
        nodes = [engine(partition=number, name=f"{strategy}-{number}") for number in range(2)]
        for node in nodes:
            do(node, "warmup", partitions=2, strategyName=strategy, batchSize=2, shuffle=True)
        cached = [tree(tmp_path / f"{strategy}-{number}") for number in range(2)]
        assert set(cached[0]) | set(cached[1]) == {f"train/{number}.jpg" for number in range(10)}
        assert not set(cached[0]) & set(cached[1])
    epoch_0 = {f"train/{number}.jpg" for number in (2, 8, 1, 6, 0)}
    assert set(tree(tmp_path / "sampler-0")) == epoch_0, "the golden vector of Paddle's sampler"


def test_a_changed_file_is_cached_anew_and_a_removed_one_no_longer(tmp_path: Path, engine: Engines, data: Path) -> None:
    node, other = engine(), engine(name="other")
    do(node, "warmup")
    do(other, "warmup")
    (data / "train" / "0.jpg").unlink()
    (data / "train" / "0.jpg").write_bytes(b"new content")
    do(node, "warmup")
    assert (tmp_path / "node" / "train" / "0.jpg").read_bytes() == b"new content"
    do(node, "rmr", paths=[f"{data}/train/1.jpg"])
    assert other.status().cachedFiles == 8, "another server counts what is gone or old"
    assert not (tmp_path / "other" / "train" / "1.jpg").exists()


def test_a_sync_that_replaces_files_leaves_no_old_copies_on_any_node(
    tmp_path: Path, engine: Engines, data: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "0.jpg").write_bytes(b"x" * 1000)
    node, other = engine(), engine(name="other")
    do(node, "warmup")
    do(other, "warmup")
    asked = {"source": f"file://{source}", "destination": f"file://{data}/train", "force-update": True}
    do(node, "sync", **asked)
    assert not (tmp_path / "node" / "train" / "0.jpg").exists()
    assert (node.status().cachedFiles, other.status().cachedFiles) == (9, 9)
    assert not (tmp_path / "other" / "train" / "0.jpg").exists()


# A sync that is run again


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text(f"{name} one")
        os.utime(folder / name, (1_700_000_000, 1_700_000_000))
    return folder


def sync(node: LocalEngine, source: Path, data: Path, **more: Any) -> Task:
    return do(node, "sync", source=f"file://{source}", destination=f"file://{data}/copy", **more)


def test_hidden_files_are_copied_and_a_folder_that_may_not_be_read_is_named(
    tmp_path: Path, engine: Engines, source: Path, data: Path
) -> None:
    (source / ".ann").mkdir()
    (source / ".ann" / "labels.csv").write_text("labels")
    (source / ".DS_Store").write_text("store")
    node = engine(sources=FolderRule((str(tmp_path),)))
    assert counts(sync(node, source, data)) == (5, 0, 0)
    (tmp_path / ".ssh").mkdir()
    (source / "keys").symlink_to(tmp_path / ".ssh")
    with pytest.raises(WorkFailed, match=r"1 of 6 files were not copied: keys: sets may not read hidden files"):
        sync(node, source, data)


def counts(task: Task) -> tuple[int, int, int]:
    """Files copied, unchanged, deleted."""
    shown = task.progress.shown()
    return shown["files"] - shown["skipped"], shown["skipped"], shown["deleted"]


def rewrite(file: Path, text: str, mtime: int) -> None:
    before = file.stat().st_size
    file.write_text(text)
    assert file.stat().st_size == before, "only the content is to differ"
    os.utime(file, (mtime, mtime))


@pytest.mark.parametrize(
    ("options", "moved", "arrives"),
    [
        ({}, +5, True),
        ({}, -5, True),  # a file that was put back from a backup is another file too
        ({"update": True}, +5, True),
        ({"update": True}, -5, False),
        ({"force-update": True}, 0, True),
        ({}, 0, False),  # nothing tells that it is another: force-update is for that
    ],
)
def test_a_file_of_the_same_size_with_new_content_arrives_when_the_option_compares_what_changed(
    engine: Engines, data: Path, source: Path, options: dict[str, Any], moved: int, arrives: bool
) -> None:
    node = engine()
    assert counts(sync(node, source, data)) == (3, 0, 0)
    rewrite(source / "b.txt", "b.txt two", 1_700_000_000 + moved)
    everything = bool(options.get("force-update"))
    assert counts(sync(node, source, data, **options)) == ((3, 0, 0) if everything else (arrives, 3 - arrives, 0))
    assert (data / "copy" / "b.txt").read_text() == ("b.txt two" if arrives else "b.txt one")


def test_a_sync_that_is_run_again_copies_nothing_twice_and_says_what_it_deleted(
    engine: Engines, data: Path, source: Path
) -> None:
    node = engine()
    sync(node, source, data)
    assert counts(sync(node, source, data)) == (0, 3, 0)
    (source / "c.txt").unlink()
    kept = sync(node, source, data)
    assert (counts(kept), kept.progress.shown()["onlyHere"]) == ((0, 2, 0), 1), "kept, and counted"
    some = sync(node, source, data, include=["a*"], exclude=["*"])
    assert some.progress.shown()["onlyHere"] == 0, "of a selection nothing is known about the rest"
    assert counts(sync(node, source, data, **{"delete-dst": True, "dry": True})) == (0, 2, 1)
    assert (data / "copy" / "c.txt").exists(), "a dry run only counts"
    assert counts(sync(node, source, data, **{"delete-dst": True})) == (0, 2, 1)
    assert not (data / "copy" / "c.txt").exists()


def test_a_file_that_was_changed_in_the_set_is_brought_back(engine: Engines, data: Path, source: Path) -> None:
    node = engine()
    sync(node, source, data)
    rewrite(data / "copy" / "a.txt", "a.txt 222", 1_800_000_000)
    assert counts(sync(node, source, data)) == (1, 2, 0)
    assert (data / "copy" / "a.txt").read_text() == "a.txt one"


def test_a_file_system_that_keeps_whole_seconds_is_not_copied_to_again_and_again(
    engine: Engines, data: Path, source: Path
) -> None:
    node = engine()
    os.utime(source / "a.txt", (1_700_000_000.25, 1_700_000_000.25))
    sync(node, source, data)
    os.utime(data / "copy" / "a.txt", (1_700_000_000, 1_700_000_000))
    assert counts(sync(node, source, data)) == (0, 3, 0)


def test_pods_that_mount_a_set_see_its_files_alone(tmp_path: Path, data: Path, source: Path) -> None:
    """A folder of ours in the set would be a class to programs that take every folder for one."""
    (data / ".paddlecloud").mkdir()
    (data / ".paddlecloud" / "manifest.db").write_text("of an earlier release")
    levels = (Level("SSD", (str(tmp_path / "node"),)),)
    node = LocalEngine(EngineSettings(str(data), levels, tmp_path / "state", 0, {}, shared=tmp_path / "own"))
    try:
        assert node.status().totalFiles == 10
        sync(node, source, data)
        assert sorted(os.listdir(data)) == ["copy", "train"]
        assert node.status().totalFiles == 13
    finally:
        node.close()


def test_copies_cost_nothing_where_links_are_possible(tmp_path: Path, engine: Engines, data: Path) -> None:
    do(engine(), "warmup")
    assert (data / "train" / "0.jpg").samefile(tmp_path / "node" / "train" / "0.jpg")


def test_on_another_file_system_a_copy_is_made(engine: Engines, data: Path) -> None:
    need(
        "/dev/shm", have=os.path.isdir("/dev/shm") and os.stat("/dev/shm").st_dev != os.stat(data).st_dev, hint="tmpfs"
    )
    folder = Path("/dev/shm") / f"paddlecloud-test-{os.getpid()}"
    try:
        node = engine(Level("MEM", (str(folder),), 20_000))
        assert do(node, "warmup").coverage == {"planned": 10, "cached": 10, "missing": []}
        assert tree(folder) == tree(data)
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_a_restarted_server_counts_what_is_really_there(tmp_path: Path, engine: Engines) -> None:
    do(engine(), "warmup")
    (tmp_path / "node" / "train" / "3.jpg").unlink()
    assert engine().status().cachedFiles == 9


def test_what_training_fetches_ahead_is_counted(
    tmp_path: Path, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodecache, "RECOUNT_PAUSE", 0.0)
    node = engine()
    assert node.status().cachedFiles == 0
    place = CacheFolders(str(tmp_path / "node"))
    lock = place.keeper()
    assert lock is not None
    with lock, place.arriving("train/0.jpg") as draft:
        Path(draft).write_bytes(bytes(1000))
    assert (node.status().cachedFiles, node.status().cachedBytes) == (1, 1000)


def test_an_empty_set_is_warm(tmp_path: Path, engine: Engines, data: Path) -> None:
    node = engine()
    do(node, "rmr", paths=[f"{data}/train"])
    assert do(node, "warmup").coverage == {"planned": 0, "cached": 0, "missing": []}
    status = node.status()
    assert (status.totalFiles, status.totalBytes, status.error) == (0, 0, "")


def test_what_is_not_there_cannot_be_warmed_or_removed(engine: Engines, data: Path) -> None:
    with pytest.raises(WorkFailed, match="'nothing' is not in the set"):
        do(engine(), "warmup", paths=[f"{data}/nothing"])
    with pytest.raises(WorkFailed, match="cannot be removed: No such file"):
        do(engine(), "rmr", paths=[f"{data}/nothing"])
    (data / "list").write_text("train/0.jpg\ntrain/none.jpg\n")
    with pytest.raises(WorkFailed, match="line 2 of .*train/none.jpg' is not in the set"):
        do(engine(), "warmup", file=f"{data}/list")


# Nobody leaves his root


@pytest.fixture
def outside(tmp_path: Path, data: Path) -> Path:
    """A folder beside the set, and links in the set that lead there."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_text("precious")
    (data / "link").symlink_to(folder)
    (data / "secret.jpg").symlink_to(folder / "precious")
    return folder


def test_rmr_removes_links_and_never_what_they_lead_to(engine: Engines, data: Path, outside: Path) -> None:
    node = engine()
    with pytest.raises(WorkFailed, match="cannot be removed"):
        do(node, "rmr", paths=[f"{data}/link/precious"])
    do(node, "rmr", paths=[f"{data}/link", f"{data}/secret.jpg"])
    assert (outside / "precious").read_text() == "precious"
    assert not (data / "link").is_symlink()


def test_sync_does_not_write_through_links(tmp_path: Path, engine: Engines, data: Path, outside: Path) -> None:
    (tmp_path / "source" / "link").mkdir(parents=True)
    (tmp_path / "source" / "link" / "precious").write_text("overwritten")
    with pytest.raises(WorkFailed, match="1 of 1 files were not copied"):
        do(engine(), "sync", source=f"file://{tmp_path}/source", destination=f"file://{data}")
    assert (outside / "precious").read_text() == "precious"


def test_links_that_lead_out_are_not_cached(tmp_path: Path, engine: Engines, outside: Path) -> None:
    do(engine(), "warmup")
    assert set(tree(tmp_path / "node")) == {f"train/{number}.jpg" for number in range(10)}


def test_a_list_that_leads_out_is_not_read(engine: Engines, data: Path, outside: Path) -> None:
    """The line that is not in the set would be in the status of the job."""
    for name in ("secret.jpg", "link/precious"):
        with pytest.raises(WorkFailed, match="leads out of the set"):
            do(engine(), "warmup", file=f"{data}/{name}")


@pytest.mark.parametrize("name", ["with space", "quote'\"", "line\nbreak", "*", "$(reboot)", "-rf", "; rm -rf ~"])
def test_strange_names_are_only_names(engine: Engines, data: Path, name: str) -> None:
    (data / name).mkdir()
    (data / name / "file").write_text("x")
    node = engine()
    assert do(node, "warmup", paths=[f"{data}/{name}"]).coverage == {"planned": 1, "cached": 1, "missing": []}
    do(node, "rmr", paths=[f"{data}/{name}"])
    assert not (data / name).exists()
    assert (data / "train").exists()


@pytest.mark.parametrize("option", ["partitions", "epochs", "ranksPerNode", "threads"])
def test_a_plan_that_would_fill_the_memory_is_refused(engine: Engines, data: Path, option: str) -> None:
    with pytest.raises(BadOptions, match="must be at most"):
        do(engine(), "warmup", strategyName="sampler", **{option: 2_000_000_000})


@pytest.mark.parametrize("path", ["ROOT/../data2", "ROOT2", "/", "relative", "ROOT/x\0y", "ROOT/.paddlecloud"])
def test_paths_outside_are_refused_by_their_words(engine: Engines, data: Path, path: str) -> None:
    for kind in ("rmr", "clear", "warmup"):
        with pytest.raises(BadOptions):
            do(engine(), kind, paths=[path.replace("ROOT", str(data))])


def test_clear_empties_caches_and_keeps_what_is_the_servers(tmp_path: Path, engine: Engines) -> None:
    node = engine()
    own = tmp_path / "node" / ".paddlecloud"
    own.mkdir(exist_ok=True)
    (own / "jobs").write_text("kept")
    do(node, "warmup")
    do(node, "clear", paths=[f"{tmp_path}/node/train"])
    assert (tree(tmp_path / "node"), node.status().cachedBytes) == ({}, 0)
    do(node, "warmup")
    do(node, "clear", paths=[f"{tmp_path}/node/*"])
    assert (tree(tmp_path / "node"), node.status().cachedFiles) == ({}, 0)
    assert (own / "jobs").read_text() == "kept"


# Disks


def test_a_full_disk_ends_the_sync_at_once_and_room_lets_it_go_on(tmp_path: Path, small_disk: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(40):
        (source / f"{number:02}").write_bytes(bytes([number]) * 40_000)
    ballast = small_disk / "ballast"
    engine = LocalEngine(EngineSettings(str(small_disk), [], tmp_path / "state", 0, {}))
    ballast.write_bytes(bytes(300_000))
    asked = {"source": f"file://{source}", "destination": f"file://{small_disk}/set"}
    with pytest.raises(WorkFailed, match="No space left on device on .*bytes are free.*make room and run again"):
        do(engine, "sync", **asked)
    whole = tree(small_disk / "set")
    assert whole
    assert all((source / name).read_bytes() == content for name, content in whole.items())
    ballast.unlink()
    for path in sorted(source.iterdir())[15:]:
        path.unlink()
    do(engine, "sync", **asked, **{"delete-dst": True})
    assert tree(small_disk / "set") == tree(source)
    engine.close()


def test_a_full_cache_disk_is_a_partial_coverage(tmp_path: Path, data: Path, small_disk: Path, engine: Engines) -> None:
    for number in range(20):
        (data / f"large-{number:02}").write_bytes(bytes(100_000))
    node = engine(Level("MEM", (str(small_disk),)))
    with pytest.raises(WorkFailed, match="files are not cached .*raise cacheSize, free disk space"):
        do(node, "warmup")
    free = os.statvfs(small_disk)
    assert free.f_bavail >= 0.05 * free.f_blocks, "a tenth of the disk was to stay free"


# Ending


def test_work_that_is_cancelled_stops_and_leaves_no_halves(tmp_path: Path, engine: Engines, data: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "large").write_bytes(bytes(2_000_000))
    node = engine()
    task = Task()
    task.cancel()
    parsed, _ = options_.parse("sync", {"source": f"file://{source}", "destination": f"file://{data}"})
    with pytest.raises(Cancelled):
        node.sync(parsed, Credentials(), task)  # type: ignore[arg-type]
    assert not (data / "large").exists()
    assert not (data / ".paddlecloud" / "unfinished").exists()


@pytest.mark.parametrize("text", ["MEM,abc,/x", "TAPE,1,/x", "MEM,1,", "MEM,1,relative", "MEM"])
def test_a_level_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(BadOptions):
        parse_levels([text], [])


def test_folders_without_a_level_are_levels_of_their_own() -> None:
    levels = parse_levels(["MEM,1,/a:/b"], ["/a", "/b/", "/c"])
    assert levels == [Level("MEM", ("/a", "/b"), 1 << 20), Level("", ("/c",))]


def test_a_removal_counts_the_files_and_bytes_that_are_gone(engine: Engines, data: Path) -> None:
    node = engine()
    assert do(node, "rmr", paths=[f"{data}/train/1.jpg"]).progress.shown()["bytes"] == 1000
    shown = do(node, "rmr", paths=[f"{data}/train"]).progress.shown()
    assert (shown["files"], shown["bytes"]) == (9, 9000)


def test_folders_of_one_disk_have_one_id_on_every_server_of_a_machine(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (first,), (second,) = disks([str(tmp_path / "a")]), disks([str(tmp_path / "b"), str(tmp_path)])
    assert first.id
    assert (first.id, first.size) == (second.id, second.size)
    assert disks([str(tmp_path / "none")]) == ()
