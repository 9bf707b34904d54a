"""The numpy that the images of Paddle come with: one that Paddle's own conversions to Python numbers work with."""

from __future__ import annotations

import pytest

from tools import paddle

PROGRAM = """
import paddle

loss = paddle.to_tensor([1.5])
print(float(loss), int(loss), f"{float(loss):.2f}", "%.1f" % loss, range(9)[paddle.to_tensor([3])])
"""


@pytest.mark.parametrize(
    "image", ["paddlecloud/paddle:3.3", "paddlecloud/model-suite:latest", "paddlecloud/paddle:2.6"]
)
def test_a_loss_of_one_dimension_becomes_a_number(image: str) -> None:
    done = paddle.run(PROGRAM, image=image)
    assert done.stdout == "1.5 1 1.50 1.5 3\n", done.stderr
