"""One process, no peers: the least a PaddleJob can be. Fits a line through noisy points and says what it found."""

import sys

import numpy as np
import paddle

rng = np.random.RandomState(0)
x = rng.uniform(-1, 1, (256, 1)).astype("float32")
y = (3 * x - 1 + rng.normal(0, 0.05, x.shape)).astype("float32")

line = paddle.nn.Linear(1, 1)
optimizer = paddle.optimizer.SGD(0.3, parameters=line.parameters())
for step in range(100):
    loss = ((line(paddle.to_tensor(x)) - paddle.to_tensor(y)) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    if step % 20 == 0:
        print(f"step {step} loss {float(loss):.4f}", flush=True)

slope, offset = line.weight.item(), line.bias.item()
print(f"y = {slope:.2f} x + {offset:.2f}", flush=True)
sys.exit(0 if abs(slope - 3) < 0.1 and abs(offset + 1) < 0.1 else 1)

# mypy: ignore-errors
