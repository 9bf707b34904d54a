"""Click-through rates from 13 numbers and 26 categories: the inputs of the Criteo and Wide & Deep examples.

Clicks follow a rule that is drawn once: some numbers and some categories make them likely. The network finds it.
"""

import numpy as np
import paddle
from paddle import nn

NUMBERS, CATEGORIES, SLOTS = 13, 26, 100


def generate(count, seed):
    rule, rng = np.random.RandomState(7), np.random.RandomState(seed + 1)
    weights, tastes = rule.normal(0, 0.5, NUMBERS), rule.normal(0, 0.7, (CATEGORIES, SLOTS))
    numbers = rng.rand(count, NUMBERS).astype("float32")
    categories = rng.zipf(1.3, (count, CATEGORIES)) % SLOTS
    score = numbers @ weights + tastes[np.arange(CATEGORIES), categories].sum(1) * 0.7
    clicks = (rng.rand(count) < 1 / (1 + np.exp(-score))).astype("float32")
    return numbers, categories.astype("int64"), clicks[:, None]


class Network(nn.Layer):
    """A wide part that remembers single categories, a deep part that combines them."""

    def __init__(self, width=4):
        super().__init__()
        self.wide = nn.Embedding(SLOTS * CATEGORIES, 1)
        self.deep = nn.Embedding(SLOTS * CATEGORIES, width)
        self.tower = nn.Sequential(nn.Linear(NUMBERS + width * CATEGORIES, 32), nn.ReLU(), nn.Linear(32, 1))

    def logits(self, numbers, categories):
        slots = categories % SLOTS + paddle.arange(CATEGORIES) * SLOTS
        deep = self.tower(paddle.concat([numbers, self.deep(slots).flatten(1)], 1))
        return deep + self.wide(slots).sum(1)

    def forward(self, dense_input, categories):
        return nn.functional.sigmoid(self.logits(dense_input, paddle.concat(categories, 1)))


def train(steps=400, batch=256):
    paddle.seed(0)
    network = Network()
    optimizer = paddle.optimizer.Adam(1e-2, parameters=network.parameters())
    for step in range(steps):
        numbers, categories, clicks = (paddle.to_tensor(part) for part in generate(batch, seed=step))
        loss = nn.functional.binary_cross_entropy_with_logits(network.logits(numbers, categories), clicks)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    network.eval()
    numbers, categories, clicks = generate(2000, seed=10_000)
    found = network.logits(paddle.to_tensor(numbers), paddle.to_tensor(categories)).numpy() > 0
    return network, float((found == (clicks > 0.5)).mean())


def export(folder, *, stem="inference", names=None):
    """`names` are what clients call the categories; the numbers are always `dense_input`."""
    network, accuracy = train()
    numbers = paddle.static.InputSpec([None, NUMBERS], "float32", "dense_input")
    names = names or [f"C{number}" for number in range(1, CATEGORIES + 1)]
    categories = [paddle.static.InputSpec([None, 1], "int64", name) for name in names]
    paddle.jit.save(network, f"{folder}/{stem}", input_spec=[numbers, categories])
    return accuracy


# mypy: ignore-errors
