"""Five kinds of flowers, drawn by formula, and a small residual network that tells them apart.

The manual's ResNet50 example classifies a photograph of a daisy. Weights of that network cannot be had offline, so this
one is trained here, on drawings: same request, same answer, a thousandth of the size.
"""

import numpy as np
import paddle
from paddle import nn

SIDE = 32
# petals, petal colour, centre colour, length and width of a petal
KINDS = {
    "daisy": (12, (0.96, 0.96, 0.92), (0.95, 0.80, 0.15), 0.85, 0.30),
    "sunflower": (16, (0.98, 0.75, 0.10), (0.35, 0.20, 0.08), 0.80, 0.40),
    "rose": (5, (0.80, 0.08, 0.16), (0.60, 0.02, 0.08), 0.70, 0.95),
    "tulip": (3, (0.90, 0.35, 0.60), (0.85, 0.30, 0.50), 0.85, 0.80),
    "dandelion": (28, (0.99, 0.90, 0.20), (0.98, 0.85, 0.10), 0.75, 0.16),
}
NAMES = list(KINDS)


def draw(kind, rng, side=SIDE):
    """One picture [side, side, 3] in 0..1: a flower somewhere on a meadow, in some light."""
    petals, colour, centre, length, width = KINDS[kind]
    y, x = np.mgrid[0:side, 0:side] / (side - 1) * 2 - 1
    x, y = x - rng.uniform(-0.2, 0.2), y - rng.uniform(-0.2, 0.2)
    scale, turn = rng.uniform(0.75, 1.0), rng.uniform(0, 2 * np.pi)
    radius, angle = np.hypot(x, y) / scale, np.arctan2(y, x) + turn
    between = np.abs(((angle * petals / (2 * np.pi)) % 1) * 2 - 1)  # 1 in the middle of a petal
    petal = (radius < length) & (between > 1 - width - 0.5 * (1 - radius / length).clip(0))
    picture = np.array([0.25, 0.5, 0.2]) * rng.uniform(0.6, 1.2) + rng.normal(0, 0.05, (side, side, 3))
    picture[petal] = np.array(colour) + rng.normal(0, 0.03, (petal.sum(), 3))
    inner = radius < 0.28 * length
    picture[inner] = np.array(centre) + rng.normal(0, 0.03, (inner.sum(), 3))
    return (picture * rng.uniform(0.8, 1.1)).clip(0, 1).astype("float32")


def generate(count, seed):
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, len(NAMES), count)
    pictures = np.stack([draw(NAMES[label], rng) for label in labels]).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(pictures), labels.astype("int64")


class Block(nn.Layer):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2D(width, width, 3, padding=1),
            nn.BatchNorm2D(width),
            nn.ReLU(),
            nn.Conv2D(width, width, 3, padding=1),
        )

    def forward(self, x):
        return nn.functional.relu(x + self.body(x))


class Network(nn.Layer):
    """Pictures to the probability of each kind."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2D(3, 12, 5, stride=2, padding=2), nn.ReLU(), Block(12), nn.MaxPool2D(2), Block(12), nn.MaxPool2D(2)
        )
        self.head = nn.Linear(12 * 16, len(NAMES))

    def logits(self, x):
        return self.head(self.body(x).flatten(1))

    def forward(self, image):
        return nn.functional.softmax(self.logits(image))


def train(steps=150, batch=64):
    paddle.seed(0)
    network = Network()
    optimizer = paddle.optimizer.Adam(3e-3, parameters=network.parameters())
    for step in range(steps):
        pictures, labels = generate(batch, seed=step)
        loss = nn.functional.cross_entropy(network.logits(paddle.to_tensor(pictures)), paddle.to_tensor(labels))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    network.eval()
    pictures, labels = generate(500, seed=10_000)
    accuracy = float((network(paddle.to_tensor(pictures)).numpy().argmax(1) == labels).mean())
    return network, accuracy


def export(folder):
    network, accuracy = train()
    spec = [paddle.static.InputSpec([None, 3, SIDE, SIDE], "float32", "image")]
    paddle.jit.save(network, f"{folder}/inference", input_spec=spec)
    return accuracy


# mypy: ignore-errors
