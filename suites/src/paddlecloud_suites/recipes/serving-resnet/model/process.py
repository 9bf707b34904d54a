"""A URL becomes a picture, and the scores become the likeliest label, as the manual's web service answers."""

import io
import os
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

from paddlecloud.serving import remote

LABELS = ("daisy", "sunflower", "rose", "tulip", "dandelion")
KNOWN = {
    "https://paddle-serving.bj.bcebos.com/imagenet-example/daisy.jpg": Path(__file__).with_name("daisy.jpg"),
}
SIDE = 32


@lru_cache
def say_once(url):
    print(f"answered from inside the image: {url} is a drawing, {KNOWN[url].name}", file=sys.stderr, flush=True)


class Flowers:
    def preprocess(self, inputs):
        if inputs["image"] in KNOWN:
            say_once(inputs["image"])
        with Image.open(io.BytesIO(remote.fetch(inputs["image"], known=KNOWN))) as picture:
            small = picture.convert("RGB").resize((SIDE, SIDE))
        return {"image": np.asarray(small, dtype="float32").transpose(2, 0, 1) / 255}

    def postprocess(self, outputs, inputs):
        best = outputs["score"].argmax(1)
        result = {
            "label": [LABELS[number] for number in best],
            "prob": [float(row[number]) for row, number in zip(outputs["score"], best, strict=True)],
        }
        if os.environ.get("IS_CANARY"):
            result["isCanary"] = ["true"] * len(inputs)
        return result


# mypy: ignore-errors
