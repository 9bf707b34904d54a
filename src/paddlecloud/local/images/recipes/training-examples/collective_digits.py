"""Data-parallel training of a small CNN on pictures of digits: one process per worker pod, gradients averaged.

Everything it needs to know comes from the environment a PaddleJob gives its pods, so it runs unchanged as
`python collective_digits.py`, under `python -m paddle.distributed.launch`, with any number of workers, or alone.
It ends with 1 when the ranks disagree about the weights or the model did not learn: a job that trained wrongly fails.
"""

import argparse
import sys
import time

import numpy as np
import paddle
import paddle.distributed as dist
from digits import generate, read
from paddle import nn

try:
    from paddlecloud.data import Files, report
except ImportError:  # an image without it: train all the same
    report = None

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--data", default="", help="folder with training images; without it every worker makes its own")
parser.add_argument("--images", type=int, default=2560, help="how many all workers together make")
parser.add_argument("--batch", type=int, default=64, help="images per step of all workers together")
parser.add_argument("--save", default="", help="where rank 0 writes the weights")
parser.add_argument("--export", default="", help="folder where rank 0 writes the model for inference")
args = parser.parse_args()

paddle.set_device("gpu" if paddle.is_compiled_with_cuda() and paddle.device.cuda.device_count() else "cpu")
dist.init_parallel_env()
rank, world = dist.get_rank(), dist.get_world_size()
paddle.seed(rank)  # differs on purpose: DataParallel must make the ranks start from the same weights

network = nn.Sequential(
    nn.Conv2D(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2),
    nn.Conv2D(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2),
    nn.Flatten(), nn.Linear(16 * 4 * 4, 10),
)  # fmt: skip
model = paddle.DataParallel(network) if world > 1 else network
optimizer = paddle.optimizer.Adam(4e-3, parameters=network.parameters())

if args.data:
    images, labels = read(Files.walk(data=args.data), rank, world)
else:
    images, labels = generate(args.images // world, seed=1000 + rank)
batch = max(1, args.batch // world)
print(f"rank {rank} of {world}: {len(images)} images, batches of {batch}", flush=True)

order = np.random.RandomState(rank)
for epoch in range(args.epochs):
    began, losses = time.time(), []
    for picked in np.array_split(order.permutation(len(images)), max(1, len(images) // batch)):
        loss = nn.functional.cross_entropy(model(paddle.to_tensor(images[picked])), paddle.to_tensor(labels[picked]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
        if report:
            report.heartbeat()
    print(
        f"rank {rank} epoch {epoch + 1}/{args.epochs} loss {np.mean(losses):.4f} in {time.time() - began:.1f}s",
        flush=True,
    )
    if report:
        report.progress(epoch=epoch + 1, epochs=args.epochs, loss=np.mean(losses))

network.eval()
test_images, test_labels = generate(500, seed=0)
with paddle.no_grad():
    predicted = network(paddle.to_tensor(test_images)).numpy().argmax(axis=1)
accuracy = float((predicted == test_labels).mean())

weights = paddle.concat([parameter.flatten() for parameter in network.parameters()])
everyone = []
if world > 1:
    dist.all_gather(everyone, weights)
equal = all(np.array_equal(weights.numpy(), other.numpy()) for other in everyone)

if rank == 0 and args.save:
    paddle.save(network.state_dict(), args.save)
if rank == 0 and args.export:
    image = paddle.static.InputSpec([None, 1, 16, 16], "float32", "image")
    paddle.jit.save(network, f"{args.export}/inference", input_spec=[image])
    print(f"rank 0 wrote the model for inference to {args.export}", flush=True)
print(f"rank {rank} accuracy {accuracy:.3f} weights equal on {world} ranks: {'yes' if equal else 'NO'}", flush=True)
sys.exit(0 if equal and accuracy > 0.8 else 1)

# mypy: ignore-errors
