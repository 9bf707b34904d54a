"""A small residual network trained with Paddle's fleet API, data-parallel over all workers of a PaddleJob.

It stands in for the manual's ResNet50 on flowers: same start (`python -m paddle.distributed.launch train_fleet.py`),
same API, but generated digits, so that it needs no download and ends within seconds on two CPU cores.
"""

import sys

import numpy as np
import paddle
from digits import generate
from paddle import nn
from paddle.distributed import fleet

try:
    from paddlecloud.data import report
except ImportError:  # an image without it: train all the same
    report = None

EPOCHS, IMAGES, BATCH = 4, 1920, 64


class Residual(nn.Layer):
    """Two convolutions and a way around them."""

    def __init__(self, inside, outside, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2D(inside, outside, 3, stride=stride, padding=1),
            nn.BatchNorm2D(outside),
            nn.ReLU(),
            nn.Conv2D(outside, outside, 3, padding=1),
            nn.BatchNorm2D(outside),
        )
        self.around = nn.Conv2D(inside, outside, 1, stride=stride)

    def forward(self, images):
        return nn.functional.relu(self.body(images) + self.around(images))


fleet.init(is_collective=True)
rank, world = fleet.worker_index(), fleet.worker_num()
paddle.seed(2024)

network = nn.Sequential(Residual(1, 8, 2), Residual(8, 16, 2), nn.AdaptiveAvgPool2D(2), nn.Flatten(), nn.Linear(64, 10))
optimizer = paddle.optimizer.Momentum(0.05, parameters=network.parameters())
model = fleet.distributed_model(network)
optimizer = fleet.distributed_optimizer(optimizer)

images, labels = generate(IMAGES // world, seed=1 + rank)
order = np.random.RandomState(rank)
for epoch in range(EPOCHS):
    losses = []
    for picked in np.array_split(order.permutation(len(images)), len(images) * world // BATCH):
        loss = nn.functional.cross_entropy(model(paddle.to_tensor(images[picked])), paddle.to_tensor(labels[picked]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
        if report:
            report.heartbeat()
    print(f"rank {rank} epoch {epoch + 1}/{EPOCHS} loss {np.mean(losses):.4f}", flush=True)
    if report:
        report.progress(epoch=epoch + 1, epochs=EPOCHS, loss=np.mean(losses))

network.eval()
test_images, test_labels = generate(500, seed=0)
with paddle.no_grad():
    predicted = network(paddle.to_tensor(test_images)).numpy().argmax(axis=1)
accuracy = float((predicted == test_labels).mean())
print(f"rank {rank} of {world} accuracy {accuracy:.3f}", flush=True)
sys.exit(0 if accuracy > 0.7 else 1)

# mypy: ignore-errors
