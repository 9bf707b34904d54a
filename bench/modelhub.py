"""Versions of models: push and pull beside `rclone copy` in one run, the second replica on a node, lists of many.

Client and server share the machine and its disk, and a push reads everything once more than rclone, for the digest that
names it. Rounds alternate, each begins with what it needs in the page cache, and ends with everything written.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from paddlecloud.api.names import MODEL_LABEL
from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import MODELS, MODELVERSIONS
from paddlecloud.modelhub import catalogue, node_folder, pull
from paddlecloud.modelhub.manifest import File, Manifest
from paddlecloud.modelhub.objects import model_object
from paddlecloud.storage.stores import Store, open_store

from .claim import Claim, busy, cpu_of, pdc
from .sync import find

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server

FILES = 8
BYTES = int(os.environ.get("BENCH_MODEL_BYTES", str(2_000_000_000)))
ROUNDS = int(os.environ.get("BENCH_MODEL_ROUNDS", "3"))
VERSIONS = int(os.environ.get("BENCH_MODEL_VERSIONS", "10000"))
SLOWER = 1.15
"""How many times as long as rclone a transfer may take: it is verified by SHA-256 at both ends."""


def run() -> Iterator[Claim]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as directory:
        base = Path(directory)
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
        pdc("up", "--data", str(base / "data"), "--port", "0", env=environment)
        environment["KUBECONFIG"] = str(base / "data" / "kubeconfig")
        try:
            yield from _transfers(base, environment)
            yield from _lists(base, environment)
        finally:
            pdc("down", "--data", str(base / "data"), env=environment)


def _transfers(base: Path, environment: dict[str, str]) -> Iterator[Claim]:
    server = S3Server(base / "s3").start()
    server.store("bench").put("made", b"")
    keys = {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "PADDLECLOUD_ENDPOINTS": f"s3://bench={server.endpoint}/bench",
        "RCLONE_CONFIG_BENCH_TYPE": "s3",
        "RCLONE_CONFIG_BENCH_PROVIDER": "SeaweedFS",
        "RCLONE_CONFIG_BENCH_ENDPOINT": server.endpoint,
        "RCLONE_CONFIG_BENCH_ACCESS_KEY_ID": ACCESS_KEY,
        "RCLONE_CONFIG_BENCH_SECRET_ACCESS_KEY": SECRET_KEY,
    }
    env = {**environment, **keys}
    try:
        times: dict[str, list[float]] = {}
        for number in range(ROUNDS):
            for name, seconds in _round(base, env, number):
                times.setdefault(name, []).append(seconds)
        middle = {name: statistics.median(found) for name, found in times.items()}
        note = f"{FILES} files, {BYTES / 1e9:.1f} GB, S3 here too, median of {ROUNDS}; {busy()}"
        for what in ("push", "pull"):
            ours, other = middle[what], middle[f"rclone {what}"]
            yield Claim(
                f"pdc model {what}", ours, "s", goal=SLOWER * other, other=other, other_name="rclone copy", note=note
            )
        ours, other = middle["again"], middle["rclone again"]
        note = f"1 of {FILES} files is new, a new version of all; {note}"
        yield Claim("pdc model push, most of it stored", ours, "s", other, other=other, other_name="rclone", note=note)
        store = open_store("s3://bench/hub", environment=env)
        yield from _second_replica(base, store)
    finally:
        server.stop()


def _round(base: Path, env: dict[str, str], number: int) -> Iterator[tuple[str, float]]:
    """What each took. A model of its own for each round: nothing of it is stored yet."""
    model = base / "model"
    _make(model, number)
    reference, place = f"big{number}", f"bench:bench/rclone/{number}"
    steps: list[tuple[str, Callable[[], None]]] = [
        ("push", lambda: _pdc(env, "push", f"{reference}:1", str(model))),
        ("rclone push", lambda: _rclone(env, str(model), f"{place}/1")),
        ("pull", lambda: _pdc(env, "pull", f"{reference}:1", str(base / "pulled"))),
        ("rclone pull", lambda: _rclone(env, f"{place}/1", str(base / "copied"))),
    ]
    for first in (0, 2):
        pair = steps[first : first + 2]
        for name, work in pair if number % 2 == 0 else pair[::-1]:
            yield name, _timed(work)
    for folder in ("pulled", "copied"):
        assert sum(path.stat().st_size for path in (base / folder).iterdir()) == BYTES // FILES * FILES
        shutil.rmtree(base / folder)
    _make(model, number + ROUNDS, only=1)
    yield "again", _timed(lambda: _pdc(env, "push", f"{reference}:2", str(model)))
    yield "rclone again", _timed(lambda: _rclone(env, str(model), f"{place}/2"))
    if number < ROUNDS - 1:
        _pdc(env, "rm", reference, "-y", "--force")
        _pdc(env, "gc", "--nobody-pushes", "-y")
    subprocess.run([str(find("rclone")), "purge", place], env=env, check=True, timeout=300, capture_output=True)


def _make(folder: Path, seed: int, only: int = FILES) -> None:
    """The same bytes in every run; random ones, which nothing compresses."""
    folder.mkdir(exist_ok=True)
    source = random.Random(seed)
    for number in range(only):
        with (folder / f"part-{number}.pdiparams").open("wb") as file:
            left = BYTES // FILES
            while left:
                block = source.randbytes(min(left, 1 << 24))
                file.write(block)
                left -= len(block)
    os.sync()


def _timed(work: Callable[[], None]) -> float:
    os.sync()
    began = time.monotonic()
    work()
    os.sync()
    return time.monotonic() - began


def _pdc(env: dict[str, str], *words: str) -> None:
    command = [sys.executable, "-m", "paddlecloud.cli.main", "model", *words, "--store", "s3://bench/hub"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(f"pdc model {words[0]}: {done.stderr[-2000:]}")


def _rclone(env: dict[str, str], source: str, target: str) -> None:
    subprocess.run([str(find("rclone")), "copy", "--quiet", source, target], env=env, check=True, timeout=900)


class _Stored:
    """A version of a store, for the folder of a node."""

    def __init__(self, store: Store, found: Manifest) -> None:
        self._store, self._found = store, found

    def manifest(self) -> Manifest:
        return self._found

    def read(self, file: File, start: int = 0) -> Iterator[Any]:
        return pull.read_stored(self._store, file, start)


def _second_replica(base: Path, store: Store) -> Iterator[Claim]:
    found = catalogue.get(store, catalogue.version_key("default", f"big{ROUNDS - 1}", "2"))
    source = _Stored(store, found)
    held = []

    def start() -> None:
        held.append(node_folder.hold(base / "node", found.digest, source))

    first, second = _timed(start), _timed(start)
    note = f"{BYTES / 1e9:.1f} GB, every file verified; {busy()}"
    yield Claim("second replica on a node: copied", held[1].fetched, "B", goal=0, note=note)
    yield Claim("second replica on a node: start", second, "s", other=first, other_name="the first", note=note)


def _lists(base: Path, env: dict[str, str]) -> Iterator[Claim]:
    asyncio.run(_register(base / "data" / "kubeconfig"))
    command = [sys.executable, "-m", "paddlecloud.cli.main", "model", "ls"]
    for words in ([], ["many"]):
        shown = " ".join(["pdc model ls", *words])
        lines = subprocess.run([*command, *words], env=env, check=True, capture_output=True, text=True, timeout=120)
        assert str(VERSIONS) in lines.stdout
        note = f"{VERSIONS} versions, median of 5, bytecode compiled; {busy()}"
        yield Claim(shown, cpu_of([*command, *words], env=env), "CPU-s", goal=0.15, note=note)


async def _register(kubeconfig: Path) -> None:
    """Objects of versions whose files are in a store that the platform does not look after."""
    client = Client(HttpTransport(config.load(kubeconfig=str(kubeconfig))))
    await client.create(MODELS, model_object("default", "many"), namespace="default")
    numbers = iter(range(1, VERSIONS + 1))

    async def work() -> None:
        for number in numbers:
            await client.create(MODELVERSIONS, _version(number), namespace="default")

    await asyncio.gather(*(work() for _ in range(8)))
    await client.close()


def _version(number: int) -> dict[str, Any]:
    spec = {
        "model": "many", "version": str(number), "digest": f"sha256:{number:064x}", "size": 100_000_000 + number,
        "files": 3, "framework": "paddle", "store": "s3://elsewhere/models", "createdBy": "ada",
        "createdAt": f"2026-10-{1 + number % 30:02}T{number // 60 % 24:02}:{number % 60:02}:00Z",
        "metrics": {"accuracy": 0.9}, "origin": {"job": "train", "image": "paddlecloud/paddle:3.3"},
    }  # fmt: skip
    meta = {"name": f"many.{number}", "labels": {MODEL_LABEL: "many"}}
    return {"apiVersion": MODELVERSIONS.api_version, "kind": MODELVERSIONS.kind, "metadata": meta, "spec": spec}
