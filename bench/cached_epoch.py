"""The manual's experiment: training over a slow link, without cache, after warm-up, and from local disk.

Real training with Paddle (MobileNetV1 × 0.25, Adam) on generated JPEGs. The origin is a web server in a network
namespace of its own; the link to the namespace of the training is `tc tbf`, 50 Mbit/s as in the manual or less, so that
computing alone would read about three times what the link delivers. Local and cached epochs take turns in one process,
and each cached one is compared with its neighbour, because nothing else is comparable on a machine that does other
things too. CPU time is compared as well: it bounds the speed on a machine that does nothing else.
Needs root, for the namespaces; takes two minutes on two idle cores.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paddlecloud.local.images.store import ImageStore

from .claim import Claim

PROGRAMS = Path(__file__).parent / "programs"
SOURCE = Path(__file__).parents[1] / "src"
COUNT, EDGE, READ_AT, BATCH, ROUNDS, WORKERS = 192, 512, 96, 16, 6, 1
STARVED = 3
"""How many times the link's rate computing alone would read."""
MANUAL_LINK = 50e6
ORIGIN, NODE, ADDRESS = "pdc-bench-origin", "pdc-bench-node", "10.209.31."
SERVER = """
import http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def __init__(self, *arguments):
        super().__init__(*arguments, directory=sys.argv[1])
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer((sys.argv[2], 8000), Handler)
print("listening", flush=True)
server.serve_forever()
"""


def run() -> Iterator[Claim]:
    if os.geteuid() != 0:
        print("cached_epoch needs root, to make network namespaces", file=sys.stderr)
        return
    python = Path(asyncio.run(ImageStore().prepare("paddlecloud/paddle:3.3")).path[0]) / "python"
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        data = folder / "data"
        data.mkdir()
        subprocess.run([python, PROGRAMS / "jpegs.py", data, str(COUNT), str(EDGE)], check=True, timeout=300)
        sizes = [path.stat().st_size for path in data.glob("*/*.jpg")]
        mean = sum(sizes) / len(sizes)
        fastest = _images_per_second(_train(python, data, folder, ranks=1, calibrate=True)["local"])
        link = min(MANUAL_LINK, fastest * mean * 8 / STARVED)
        with _slow_link(data, link):
            for ranks in (1, 2):
                yield from _experiment(python, data, folder, ranks=ranks, link=link, mean=mean)


def _experiment(python: Path, data: Path, folder: Path, *, ranks: int, link: float, mean: float) -> Iterator[Claim]:
    found = _train(python, data, folder, ranks=ranks)
    local, warm, cold = (_images_per_second(found[name]) for name in ("local", "warm", "cold"))
    delivered = link / 8 / mean
    losses = [found["cold"][0][2], found["warm"][-1][2]]
    later = list(found["figures"].values())
    hits = sum(epoch["hits"] for epoch in later) / sum(epoch["hits"] + epoch["misses"] for epoch in later)
    name = f"{ranks} rank" + ("s" if ranks > 1 else "")
    setting = (
        f"{COUNT} JPEGs of {mean / 1000:.0f} KB, link {link / 1e6:.1f} Mbit/s = {delivered:.0f} img/s, "
        f"batch {BATCH}, MobileNetV1×0.25 at {READ_AT} px, load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
    )
    yield Claim(f"epoch without cache, {name}", cold, "img/s", other=delivered, other_name="the link", note=setting)
    yield Claim(
        f"computing alone, {name}",
        local / delivered,
        "× the link",
        goal=2,
        at_least=True,
        note=f"{local:.0f} img/s from local disk",
    )
    yield Claim(f"cached epochs after warm-up, {name}", warm, "img/s", other=cold, other_name="without cache")
    pairs = [one[0] / other[0] for one, other in zip(found["local"], found["warm"], strict=True)]
    yield Claim(
        f"cached epoch as fast as from local disk, {name}",
        statistics.median(pairs),
        "×",
        goal=0.98,
        at_least=True,
        note=f"wall clock, median of {ROUNDS} pairs in turn ({min(pairs):.2f}–{max(pairs):.2f}); "
        f"loss {losses[0]:.2f} → {losses[1]:.2f}",
    )
    warm_cpu, local_cpu = (sum(epoch[1] for epoch in found[kind]) / ROUNDS for kind in ("warm", "local"))
    yield Claim(
        f"the same by CPU time, {name}",
        local_cpu / warm_cpu,
        "×",
        goal=0.98,
        at_least=True,
        note=f"rank 0 and its loaders: {warm_cpu:.2f} CPU-s an epoch with prefetching, {local_cpu:.2f} from local disk",
    )
    yield Claim(
        f"hit ratio of shuffled cached epochs, {name}",
        hits,
        "",
        goal=0.99,
        at_least=True,
        note=f"sampler plan, cache for everything; warm-up took {found['warmup_seconds']:.0f} s",
    )


def _images_per_second(epochs: list[list[float]]) -> float:
    return COUNT * len(epochs) / sum(seconds for seconds, *_ in epochs)


def _train(python: Path, data: Path, folder: Path, *, ranks: int, calibrate: bool = False) -> dict[str, Any]:
    config = {
        "ranks": ranks,
        "edge": READ_AT,
        "batch": BATCH,
        "workers": WORKERS,
        "rounds": ROUNDS,
        "local": str(data),
        "origin": f"http://{ADDRESS}1:8000",
        "cache": str(folder / f"cache-{ranks}"),
        **({"calibrate": True} if calibrate else {}),
    }
    endpoints = [f"127.0.0.1:{36_000 + rank}" for rank in range(ranks)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PADDLE"))}
    processes = [
        subprocess.Popen(
            [
                *([] if calibrate else ["ip", "netns", "exec", NODE]),
                *(str(python), str(PROGRAMS / "training.py"), json.dumps(config)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **clean,
                "PYTHONPATH": str(SOURCE),
                "GLOG_minloglevel": "2",
                "OMP_NUM_THREADS": "1",
                "PADDLE_TRAINER_ID": str(rank),
                "PADDLE_TRAINERS_NUM": str(ranks),
                "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
                "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
                "PADDLE_DISTRI_BACKEND": "gloo",
            },
        )
        for rank in range(ranks)
    ]
    try:
        reported = [process.communicate(timeout=900) for process in processes]
    finally:
        for process in processes:
            process.kill()
    output, errors = reported[0]
    if "RESULT" not in output:
        raise RuntimeError(f"training ended without a result: {errors[-3000:]}")
    result: dict[str, Any] = json.loads(output.partition("RESULT")[2])
    return result


@contextmanager
def _slow_link(data: Path, rate: float) -> Iterator[None]:
    """Two namespaces, a cable between them that lets `rate` bit/s through, and the web server at its far end."""
    server = None
    _remove_namespaces()  # of a run that was killed
    try:
        _sh(f"ip netns add {ORIGIN}", f"ip netns add {NODE}")
        _sh(f"ip link add eth0 netns {ORIGIN} type veth peer name eth0 netns {NODE}")
        for namespace, last in ((ORIGIN, 1), (NODE, 2)):
            inside = f"ip -n {namespace}"
            _sh(
                f"{inside} addr add {ADDRESS}{last}/24 dev eth0",
                f"{inside} link set eth0 up",
                f"{inside} link set lo up",
            )
            limit = f"rate {rate / 1000:.0f}kbit burst 64kb latency 200ms"
            _sh(f"ip netns exec {namespace} tc qdisc add dev eth0 root tbf {limit}")
        server = subprocess.Popen(
            ["ip", "netns", "exec", ORIGIN, sys.executable, "-c", SERVER, str(data), f"{ADDRESS}1"],
            stdout=subprocess.PIPE,
        )
        assert server.stdout is not None
        assert server.stdout.readline(), "the server did not start"
        yield
    finally:
        if server is not None:
            server.kill()
            server.communicate()
        _remove_namespaces()


def _remove_namespaces() -> None:
    for namespace in (ORIGIN, NODE):
        subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)


def _sh(*lines: str) -> None:
    for line in lines:
        done = subprocess.run(line.split(), capture_output=True, text=True, check=False, timeout=30)
        if done.returncode != 0:
            raise RuntimeError(f"{line}: {done.stderr.strip()}")
