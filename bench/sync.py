"""Sync and warm-up of many small files: ours, rclone and `juicefs sync` in one run, from one S3 server.

Client and server share the machine, so the clock tells mostly how busy it was; the CPU-seconds of each client are what
it costs. Every round copies the same objects to an empty folder; the order of the programs changes between rounds.
"""

from __future__ import annotations

import concurrent.futures
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .claim import Claim

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server

FILES = int(os.environ.get("BENCH_SYNC_FILES", "20000"))
SMALLEST, LARGEST = 8_000, 24_000
THREADS = 16
ROUNDS = int(os.environ.get("BENCH_SYNC_ROUNDS", "2"))

Program = Callable[[S3Server, Path], None]


def run() -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory)
        server = S3Server(base / "s3").start()
        try:
            total = upload(server)
            _run([sys.executable, "-m", "paddlecloud.cache.nuwa", "--help"])  # compiled before anything is measured
            times = measure(server, base)
            warm = warmed(base)
            on_juicefs = warmed_on_juicefs(base)
        finally:
            server.stop()
    others = [name for name in times if name not in ("nuwa", "again") and times[name]]
    ours_s, ours_cpu = middle(times["nuwa"])
    load = os.getloadavg()[0]
    note = f"{FILES} files, {total / 1e6:.0f} MB, S3 here too, {THREADS} threads, median of {ROUNDS}, load {load:.0f}"
    best = min(others, key=lambda name: middle(times[name])[0])
    best_s, _ = middle(times[best])
    yield Claim("sync of small files from S3", ours_s, "s", goal=best_s, other=best_s, other_name=best, note=note)
    cheapest = min(others, key=lambda name: middle(times[name])[1])
    cheap_cpu = middle(times[cheapest])[1]
    yield Claim("CPU of that sync, client", ours_cpu, "CPU-s", other=cheap_cpu, other_name=cheapest, note=note)
    for name in others:
        seconds, cpu = middle(times[name])
        yield Claim(f"{name}, the same", seconds, "s", note=f"{cpu:.1f} CPU-s")
    yield Claim(
        "the same again, nothing changed", statistics.median(times_again(times)), "s", note="skipped by manifest"
    )
    yield Claim("warm-up of these files, local engine", warm, "s", note="hard links; one partition, whole set")
    if on_juicefs is not None:
        ours, alone = on_juicefs
        note = "SQLite and a folder, cold; ours asks `--check` afterwards"
        yield Claim("warm-up, juicefs engine", ours, "s", other=alone, other_name="juicefs warmup", note=note)


def upload(server: S3Server) -> int:
    """The same bytes in every run."""
    store = server.store("bench")
    source = random.Random(1)
    block = source.randbytes(LARGEST)
    sizes = [source.randint(SMALLEST, LARGEST) for _ in range(FILES)]

    def put(number: int) -> None:
        store.put(f"set/{number // 100:03}/{number:06}.jpg", block[: sizes[number]])

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(put, range(FILES)):
            pass
    return sum(sizes)


def measure(server: S3Server, base: Path) -> dict[str, list[tuple[float, float]]]:
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
    times["again"] = []
    names = [name for name in PROGRAMS if find(name)]
    for number in range(ROUNDS):
        for name in names if number % 2 == 0 else reversed(names):
            target = base / f"{name}-{number}"
            times[name].append(timed(lambda name=name, target=target: PROGRAMS[name](server, target)))
            copied = sum(1 for path in target.rglob("*.jpg"))
            assert copied == FILES, f"{name} copied {copied} of {FILES}"
            if name == "nuwa":
                times["again"].append(timed(lambda target=target: nuwa(server, target)))
            if name != "nuwa" or number < ROUNDS - 1:
                shutil.rmtree(target)
    return times


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """Seconds and CPU-seconds of the programs it runs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    work()
    seconds = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def times_again(times: dict[str, list[tuple[float, float]]]) -> list[float]:
    return [seconds for seconds, _ in times["again"]]


def middle(measured: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(s for s, _ in measured), statistics.median(c for _, c in measured)


def warmed(base: Path) -> float:
    data = base / f"nuwa-{ROUNDS - 1}"
    command = [
        sys.executable, "-m", "paddlecloud.cache.nuwa", "warmup", "--driver=local", f"--dataDir={data}",
        f"--cacheDirs={base / 'cache'}",
    ]  # fmt: skip
    return timed(lambda: _run(command))[0]


def warmed_on_juicefs(base: Path) -> tuple[float, float] | None:
    """Seconds of ours and of JuiceFS alone, on the same mount; None where nothing can be mounted."""
    program = find("juicefs")
    if program is None or not os.path.exists("/dev/fuse") or os.geteuid() != 0:
        return None
    meta, mount, cache = f"sqlite3://{base}/meta.db", base / "mount", base / "blocks"
    for folder in (mount, cache):
        folder.mkdir()
    _run([program, "format", "--storage=file", f"--bucket={base}/objects/", meta, "bench"])
    _run([program, "sync", f"--threads={THREADS}", f"{base}/nuwa-{ROUNDS - 1}/", "jfs://META/"], META=meta)
    _run([program, "mount", "-d", "--no-usage-report", f"--cache-dir={cache}", meta, str(mount)])
    try:
        _run([program, "warmup", "--evict", str(mount)])
        alone = timed(lambda: _run([program, "warmup", str(mount)]))[0]
        _run([program, "warmup", "--evict", str(mount)])
        command = [
            sys.executable, "-m", "paddlecloud.cache.nuwa", "warmup", "--driver=juicefs", f"--dataDir={mount}",
            f"--cacheDirs={cache}",
        ]  # fmt: skip
        return timed(lambda: _run(command))[0], alone
    finally:
        _run([program, "umount", "--force", str(mount)])


def find(name: str) -> str | None:
    if name == "nuwa":
        return sys.executable
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name)


def nuwa(server: S3Server, target: Path) -> None:
    """With its keys in a folder, as a pod has them."""
    keys = server.folder / "keys"
    keys.mkdir(exist_ok=True)
    (keys / "access-key").write_text(ACCESS_KEY)
    (keys / "secret-key").write_text(SECRET_KEY)
    command = [
        sys.executable, "-m", "paddlecloud.cache.nuwa", "sync", "--driver=local", f"--dataDir={target}",
        f"--credentials={keys}", f"--threads={THREADS}", "--no-https",
        f"s3://{server.host}:{server.port}/bench/set", f"file://{target}",
    ]  # fmt: skip
    _run(command)


def rclone(server: S3Server, target: Path) -> None:
    env = {
        "RCLONE_CONFIG_BENCH_TYPE": "s3",
        "RCLONE_CONFIG_BENCH_PROVIDER": "SeaweedFS",
        "RCLONE_CONFIG_BENCH_ENDPOINT": server.endpoint,
        "RCLONE_CONFIG_BENCH_ACCESS_KEY_ID": ACCESS_KEY,
        "RCLONE_CONFIG_BENCH_SECRET_ACCESS_KEY": SECRET_KEY,
    }
    flags = [f"--transfers={THREADS}", f"--checkers={THREADS}", "--s3-no-head", "--use-server-modtime", "--quiet"]
    _run([str(find("rclone")), "copy", *flags, "bench:bench/set", str(target)], **env)


def juicefs(server: S3Server, target: Path) -> None:
    target.mkdir()
    env = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    source = f"s3://{server.host}:{server.port}/bench/set/"
    _run([str(find("juicefs")), "sync", f"--threads={THREADS}", "--no-https", source, f"{target}/"], **env)


PROGRAMS: dict[str, Program] = {"nuwa": nuwa, "rclone": rclone, "juicefs": juicefs}


def _run(command: list[str], **env: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, timeout=900)
    if done.returncode:
        raise RuntimeError(f"{command[0]} exited {done.returncode}: {done.stderr[-2000:]}")
