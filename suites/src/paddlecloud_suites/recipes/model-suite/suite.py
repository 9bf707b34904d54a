"""What `tools/train.py` of the small model suites have in common: arguments, the training loop, its words and files.

`-c FILE` names a configuration and `-o A.B=VALUE …` changes it, as in Paddle's own suites. The configurations are YAML
in the form of JSON, which needs no package.
"""

import argparse
import json
import os
import struct
import sys
import time

import numpy as np
import paddle
from PIL import Image


def configure():
    """The configuration that the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-c", "--config", required=True)
    parser.add_argument("-o", "--opt", nargs="*", action="extend", default=[])
    chosen = parser.parse_args()
    with open(chosen.config, encoding="utf-8") as file:
        config = json.load(file)
    for option in chosen.opt:
        name, _, value = option.partition("=")
        change(config, name.split("."), value)
    paddle.seed(0)
    paddle.set_device("cpu")  # these programs learn on any machine, whatever the job asked for
    return config


def change(config, path, value):
    for part in path[:-1]:
        config = config.setdefault(part, {})
    try:
        config[path[-1]] = json.loads(value)
    except ValueError:
        config[path[-1]] = value


def picture(path, size):
    """An image as channels × size × size, between 0 and 1, and what it was scaled by."""
    with Image.open(path) as image:
        width, height = image.size
        pixels = np.asarray(image.convert("RGB").resize((size, size)), dtype="float32") / 255
    return pixels.transpose(2, 0, 1), (size / width, size / height)


def fit(model, samples, loss_of, *, epochs, batch, folder, rate=3e-3, log_every=1, curve=None):
    """Train, say how it goes, and leave weights after every epoch. Returns the mean loss of each epoch."""
    optimizer = paddle.optimizer.Adam(rate, parameters=model.parameters())
    order = np.random.RandomState(0)
    losses, done, total = [], 0, epochs * (-(-len(samples) // batch))
    os.makedirs(folder, exist_ok=True)
    for epoch in range(epochs):
        seen, began = [], time.time()
        shuffled = order.permutation(len(samples))
        for iteration, start in enumerate(range(0, len(samples), batch)):
            chosen = [samples[i] for i in shuffled[start : start + batch]]
            inputs, *targets = (paddle.to_tensor(np.stack(part)) for part in zip(*chosen, strict=True))
            loss = loss_of(model(inputs), *targets)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            seen.append(float(loss))
            done += 1
            tell(done, total, seen[-1])
            if curve is not None:
                curve("TRAIN/loss", done, seen[-1])
            if iteration % log_every == 0:
                print(f"epoch: [{epoch + 1}/{epochs}] iter: {iteration} loss: {seen[-1]:.4f}", flush=True)
        losses.append(sum(seen) / len(seen))
        speed = len(samples) / (time.time() - began)
        print(f"epoch {epoch + 1}/{epochs} mean loss {losses[-1]:.4f} ips: {speed:.1f} images/s", flush=True)
        paddle.save(model.state_dict(), os.path.join(folder, "latest.pdparams"))
    return losses


try:
    from paddlecloud.data import report
except ImportError:  # an image that nobody put it into, such as one for docker run
    report = None


def tell(step, total, loss):
    """Progress for `kubectl get pdj -o wide`."""
    if report is not None:
        report.progress(step=step, total=total, loss=loss)


def visualdl(folder):
    """A function that adds a scalar to a record file, as VisualDL's LogWriter does; the image does not hold VisualDL.

    A record is its length in eight bytes and a message of protocol buffers: the step, tag, milliseconds and value.
    """
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"vdlrecords.{time.time():010.0f}.log")

    def add(tag, step, value):
        name, now = tag.encode(), round(time.time() * 1000)
        fields = b"\x08" + varint(step) + b"\x12" + varint(len(name)) + name + b"\x18" + varint(now)
        message = fields + b"\x25" + struct.pack("<f", value)
        record = b"\x0a" + varint(len(message)) + message
        with open(path, "ab") as file:
            file.write(struct.pack("<Q", len(record)) + record)

    return add


def varint(number):
    rest = b""
    while number > 127:
        rest += bytes([number & 127 | 128])
        number >>= 7
    return rest + bytes([number])


def load(model, prefix, *, what="training begins"):
    """Begin with the weights that `pretrained_model` names, and with what a note beside them says of them."""
    if not prefix:
        return
    path = prefix + ".pdparams"
    if not os.path.exists(path):
        sys.exit(f"pretrained_model={prefix}: there is no {path}")
    model.set_state_dict(paddle.load(path))
    print(f"{what} with the weights in {path}", flush=True)
    note = os.path.join(os.path.dirname(prefix), "NOTE.txt")
    if os.path.exists(note):
        with open(note, encoding="utf-8") as file:
            print(f"{note}: {file.read().strip()}", flush=True)


# mypy: ignore-errors
