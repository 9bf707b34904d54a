"""Real training, epoch by epoch from one place and another: `training.py CONFIG`, a JSON object.

Epochs of different places take turns in one process, so that whatever else the machine does meets all of them. Rank 0
prints `RESULT` and a JSON object.
"""

import io
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import paddle
from paddle.io import DataLoader, Dataset, DistributedBatchSampler
from PIL import Image

from paddlecloud.data import Files

CONFIG = json.loads(sys.argv[1])
RANK, RANKS = int(os.environ.get("PADDLE_TRAINER_ID", 0)), CONFIG["ranks"]
EDGE = CONFIG["edge"]


class Images(Dataset):
    def __init__(self, files: Files, labels: list[int]) -> None:
        self.files, self.labels = files, labels

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        image = Image.open(io.BytesIO(self.files.read(index)))
        image.draft("RGB", (EDGE, EDGE))  # decodes at a fraction of the size, as loaders for training do
        pixels = np.asarray(image.resize((EDGE, EDGE)), dtype="float32")
        return (pixels.transpose(2, 0, 1) - 128) / 64, self.labels[index]


class Run:
    def __init__(self) -> None:
        paddle.seed(1)
        self.model = paddle.vision.models.mobilenet_v1(scale=0.25, num_classes=4)
        if RANKS > 1:
            paddle.distributed.init_parallel_env()
            self.model = paddle.DataParallel(self.model)
        self.optimizer = paddle.optimizer.Adam(1e-3, parameters=self.model.parameters())
        self.loss = paddle.nn.CrossEntropyLoss()
        lines = [line.split() for line in Path(CONFIG["local"], "train.txt").read_text().splitlines()]
        self.paths, self.labels = [line[0] for line in lines], [int(line[1]) for line in lines]

    def place(self, **places: str) -> tuple[Files, DistributedBatchSampler, DataLoader]:
        files = Files(self.paths, **places)
        images = Images(files, self.labels)
        sampler = DistributedBatchSampler(images, CONFIG["batch"], RANKS, RANK, shuffle=True)
        return files, sampler, DataLoader(images, batch_sampler=sampler, num_workers=CONFIG["workers"])

    def epoch(self, files: Files, loader: DataLoader) -> tuple[float, float, float]:
        """Seconds and CPU-seconds of an epoch, and its last loss."""
        self.together()
        began, used = time.perf_counter(), cpu()
        for images, labels in files.watch(loader):
            loss = self.loss(self.model(images), labels)
            loss.backward()
            self.optimizer.step()
            self.optimizer.clear_grad()
        last = float(loss)
        self.together()
        return time.perf_counter() - began, cpu() - used, last

    def together(self) -> None:
        if RANKS > 1:
            paddle.distributed.barrier()


def cpu() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    run = Run()
    result: dict[str, object] = {}
    local_files, _, local = run.place(data=CONFIG["local"])
    run.epoch(local_files, local)  # the first steps prepare what later ones reuse
    if "calibrate" in CONFIG:
        result["local"] = [run.epoch(local_files, local)]
    else:
        cold_files, _, cold = run.place(data=CONFIG["origin"])
        result["cold"] = [run.epoch(cold_files, cold)]
        files, sampler, cached = run.place(data=CONFIG["origin"], cache=CONFIG["cache"])
        files.follow(sampler, epochs=CONFIG["rounds"])
        began = time.perf_counter()
        while len(list(Path(CONFIG["cache"]).glob("*/*.jpg"))) < len(run.paths):
            time.sleep(0.05)
        result["warmup_seconds"] = time.perf_counter() - began
        result["local"], result["warm"] = [], []
        for number in range(CONFIG["rounds"]):
            pair = [("local", local_files, local), ("warm", files, cached)]
            for name, which, loader in pair if number % 2 else reversed(pair):
                result[name].append(run.epoch(which, loader))
        result["figures"] = {epoch: vars(figures) for epoch, figures in files.figures().items()}
    if RANK == 0:
        print("RESULT" + json.dumps(result), flush=True)


main()
