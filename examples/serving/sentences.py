"""Sentence vectors from a small transformer, with the inputs of the BERT example of Paddle Serving.

It learns which of eight topics a sentence of made-up tokens is about; the vector before that answer is what it serves.
"""

import numpy as np
import paddle
from paddle import nn

LENGTH, VOCABULARY, TOPICS = 128, 1000, 8


def generate(count, seed):
    """Token numbers [count, 128], mask [count, 128] and topics: each topic prefers its own eighth of the tokens."""
    rng = np.random.RandomState(seed)
    topics = rng.randint(0, TOPICS, count)
    tokens = rng.randint(1, VOCABULARY, (count, LENGTH))
    own = rng.rand(count, LENGTH) < 0.4
    tokens[own] = (tokens[own] // TOPICS) * TOPICS + topics.repeat(LENGTH).reshape(count, LENGTH)[own]
    mask = (np.arange(LENGTH) < rng.randint(8, LENGTH, (count, 1))).astype("float32")
    return (tokens * mask).astype("int64"), mask, topics.astype("int64")


class Network(nn.Layer):
    def __init__(self, width=32):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.places = nn.Embedding(LENGTH, width)
        self.segments = nn.Embedding(2, width)
        self.mixer = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0), 1)
        self.pool = nn.Linear(width, width)
        self.topic = nn.Linear(width, TOPICS)

    def forward(self, input_ids, position_ids, segment_ids, input_mask):
        """Each input is [batch, 128, 1], as that example sends it."""
        squeezed = (part.squeeze(-1) for part in (input_ids, position_ids, segment_ids))
        ids, places, segments = squeezed
        x = self.tokens(ids) + self.places(places) + self.segments(segments)
        mask = input_mask.squeeze(-1)
        x = self.mixer(x, ((1 - mask) * -1e4).unsqueeze([1, 2]))
        mean = (x * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True).clip(min=1)
        return paddle.tanh(self.pool(mean))


def inputs(tokens, mask):
    places = np.broadcast_to(np.arange(LENGTH), tokens.shape)
    parts = (tokens, places, np.zeros_like(tokens), mask)
    return [paddle.to_tensor(np.ascontiguousarray(part)[..., None]) for part in parts]


def train(steps=120, batch=64):
    paddle.seed(0)
    network = Network()
    optimizer = paddle.optimizer.Adam(5e-3, parameters=network.parameters())
    for step in range(steps):
        tokens, mask, topics = generate(batch, seed=step)
        scores = network.topic(network(*inputs(tokens, mask)))
        loss = nn.functional.cross_entropy(scores, paddle.to_tensor(topics))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    network.eval()
    tokens, mask, topics = generate(400, seed=10_000)
    found = network.topic(network(*inputs(tokens, mask))).numpy().argmax(1)
    return network, float((found == topics).mean())


def export(folder):
    network, accuracy = train()
    kinds = {"input_ids": "int64", "position_ids": "int64", "segment_ids": "int64", "input_mask": "float32"}
    specs = [paddle.static.InputSpec([None, LENGTH, 1], kind, name) for name, kind in kinds.items()]
    paddle.jit.save(network, f"{folder}/inference", input_spec=specs)
    return accuracy


# mypy: ignore-errors
