"""Training that survives its own restarts: any number of workers, at any time, goes on where the last ones stopped.

The step, the weights and the optimizer are saved together every few steps by rank 0 and renamed into place, so that a
checkpoint is either whole or absent. When the job is scaled, or a worker dies, all workers are started anew and load
it.
The number of workers changes how the work is split, never what is learned: every step uses the same 64 images.
"""

import argparse
import os
import sys
import time

import numpy as np
import paddle
import paddle.distributed as dist
from digits import generate
from paddle import nn

try:
    from paddlecloud.data import report
except ImportError:  # an image without it: train all the same
    report = None

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--checkpoint", default=os.environ.get("CHECKPOINT", "checkpoint"), help="folder all workers see")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait in each step, to watch it longer")
args = parser.parse_args()

paddle.set_device("cpu")
dist.init_parallel_env()
rank, world = dist.get_rank(), dist.get_world_size()

network = nn.Sequential(nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = paddle.optimizer.Adam(2e-3, parameters=network.parameters())
path = os.path.join(args.checkpoint, "last.pdparams")
os.makedirs(args.checkpoint, exist_ok=True)
first = 0
if os.path.exists(path):
    saved = paddle.load(path)
    network.set_state_dict(saved["network"])
    optimizer.set_state_dict(saved["optimizer"])
    first = int(saved["step"])
print(f"rank {rank} of {world} starts at step {first}", flush=True)
model = paddle.DataParallel(network) if world > 1 else network


def save(step):
    paddle.save({"network": network.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path + ".new")
    os.replace(path + ".new", path)


images, labels = generate(2048, seed=1)
for step in range(first, args.steps):
    batch = np.random.RandomState(step).permutation(len(images))[:64]  # the same on every rank, then shared out
    mine = batch[rank::world]
    loss = nn.functional.cross_entropy(model(paddle.to_tensor(images[mine])), paddle.to_tensor(labels[mine]))
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    time.sleep(args.pause)
    if report:
        report.progress(step + 1, args.steps, loss=float(loss))
    if rank == 0 and (step + 1) % args.every == 0:
        save(step + 1)
        if report:
            report.checkpoint(path, step=step + 1)
        print(f"step {step + 1}/{args.steps} loss {float(loss):.4f} workers {world}", flush=True)

network.eval()
test_images, test_labels = generate(500, seed=0)
with paddle.no_grad():
    accuracy = float((network(paddle.to_tensor(test_images)).numpy().argmax(axis=1) == test_labels).mean())
print(f"rank {rank} done after {args.steps} steps, accuracy {accuracy:.3f}", flush=True)
sys.exit(0 if accuracy > 0.7 else 1)

# mypy: ignore-errors
