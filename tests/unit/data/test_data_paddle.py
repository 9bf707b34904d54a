"""The helper inside real Paddle: two ranks, DataLoader workers, one cache, and what is reported to the controller."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paddlecloud.local.images import library
from paddlecloud.local.images.store import default_cache
from tools import paddle
from unit.data.test_data_report import Controller, controller, listening

__all__ = ["controller"]

COUNT, EPOCHS = 240, 3
TRAINING = """
import os, sys, time
import numpy as np
import paddle
from paddle.io import DataLoader, Dataset, DistributedBatchSampler
from paddlecloud.data import Files

rank, together = int(sys.argv[1]), sys.argv[2]
files = Files.listed("train.txt")

class Numbers(Dataset):
    def __len__(self):
        return len(files)

    def __getitem__(self, index):
        return np.frombuffer(files.read(index), dtype="uint8")[:8].astype("float32")

def everyone_is_here(when):
    '''Ranks of a real job wait for each other in every step.'''
    open(f"{together}.{when}.{rank}", "w").close()
    while not all(os.path.exists(f"{together}.{when}.{other}") for other in range(2)):
        time.sleep(0.01)

def everything_is_here():
    '''An epoch of a real job is long: what was missed has been copied when the next begins.'''
    while len([name for name in os.listdir(os.environ["PADDLECLOUD_CACHE_DIR"]) if name.endswith(".bin")]) < len(files):
        time.sleep(0.01)

sampler = DistributedBatchSampler(Numbers(), batch_size=10, num_replicas=2, rank=rank, shuffle=True)
loader = DataLoader(Numbers(), batch_sampler=sampler, num_workers=2)
files.follow(sampler, epochs=3)
everyone_is_here("at the start")
layer = paddle.nn.Linear(8, 1)
seen = 0
for epoch in range(3):
    for batch in files.watch(loader):
        layer(batch).mean().backward()
        seen += len(batch)
    everyone_is_here(epoch)
    everything_is_here()
found = files.figures()
print("RESULT", seen, sum(e.hits for e in found.values()), sum(e.misses for e in found.values()), sorted(found))
"""


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(COUNT):
        (folder / f"{number}.bin").write_bytes(bytes([number]) * 2000)
    (folder / "train.txt").write_text("".join(f"{number}.bin {number % 7}\n" for number in range(COUNT)))
    return folder


@pytest.mark.paddle
@pytest.mark.timeout(900)
def test_two_ranks_with_workers_read_through_one_cache(dataset: Path, tmp_path: Path, controller: Controller) -> None:
    interpreter = paddle.interpreter()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PADDLE"))}
    environment = {
        **clean,
        "PYTHONPATH": str(library.folder(default_cache())),  # as in a pod
        "PADDLECLOUD_DATA_DIR": str(dataset),
        "PADDLECLOUD_CACHE_DIR": str(tmp_path / "cache"),
        **listening(controller),
    }
    ranks = [
        subprocess.Popen(
            [interpreter, "-c", TRAINING, str(rank), str(tmp_path / "here")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    ended = [rank.communicate(timeout=200) for rank in ranks]
    hits = 0
    for output, errors in ended:
        assert "RESULT" in output, errors[-2000:]
        seen, hit, missed = map(int, output.split()[1:4])
        assert (seen, hit + missed) == (EPOCHS * COUNT // 2, EPOCHS * COUNT // 2), "every read is counted, once"
        assert output.rstrip().endswith("[0, 1, 2]")
        hits += hit
    assert hits >= (EPOCHS - 1) * COUNT, "from the second epoch on everything is on the node"
    assert len(list((tmp_path / "cache").glob("*.bin"))) == COUNT
    reported = [body["cache"] for body in controller.bodies if "cache" in body]
    final = [cache for cache in reported if cache["hits"] + cache["misses"] == EPOCHS * COUNT // 2]
    assert len(final) >= 2, "the end is not lost"
    assert [epoch["epoch"] for epoch in final[-1]["epochs"]] == [0, 1, 2]
    assert sum(epoch["hits"] for epoch in final[-1]["epochs"]) == final[-1]["hits"]


def test_files_for_training_and_for_evaluation_are_reported_together(tmp_path: Path, controller: Controller) -> None:
    (tmp_path / "a.bin").write_bytes(b"a")
    program = """
import sys
from paddlecloud.data import Files
for reads in (3, 2):
    files = Files(["a.bin"], data=sys.argv[1], cache=sys.argv[1] + "/cache")
    for batch in files.watch(files.read(0) for _ in range(reads)):
        pass
"""
    done = bare(program, str(tmp_path), **listening(controller))
    assert (done.returncode, done.stderr) == (0, "")
    reported = [body["cache"] for body in controller.bodies if "cache" in body][-1]
    assert (reported["hits"], reported["misses"], len(reported["epochs"])) == (0, 5, 1)


def bare(program: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter without any installed package, with what pods get."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PADDLE"))}
    return subprocess.run(
        [sys.executable, "-S", "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**clean, "PYTHONPATH": str(library.folder(default_cache())), **env},
    )


def test_pods_get_what_they_need_and_nothing_else_is_needed(tmp_path: Path) -> None:
    """An interpreter without any installed package reads, plans and prefetches."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.bin").write_bytes(b"a")
    program = """
import sys, types
from paddlecloud.data import Files
sampler = types.SimpleNamespace(batch_size=1, shuffle=True, drop_last=False, nranks=1, local_rank=0, epoch=0)
files = Files(["a.bin"], data=sys.argv[1] + "/data", cache=sys.argv[1] + "/cache")
files.follow(sampler, epochs=1)
print(files.read(0), "paddlecloud.cache.plan.schedule" in sys.modules)
"""
    done = bare(program, str(tmp_path))
    assert (done.stdout, done.stderr) == ("b'a' True\n", "")
