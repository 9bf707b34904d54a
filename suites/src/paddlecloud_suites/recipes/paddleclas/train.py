"""Image classification on a list of pictures and labels, with a residual network of one block."""

import os
import sys

sys.path.insert(0, "/opt/suite")

import numpy as np
import paddle
import suite
from paddle import nn

SIZE = 48


class Residual(nn.Layer):
    def __init__(self, channels):
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2D(channels, channels, 3, padding=1), nn.ReLU(), nn.Conv2D(channels, channels, 3, padding=1)
        )

    def forward(self, x):
        return nn.functional.relu(x + self.inner(x))


def network(classes):
    return nn.Sequential(
        *(nn.Conv2D(3, 16, 5, stride=4, padding=2), nn.ReLU(), Residual(16)),
        *(nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(16, classes)),
    )


def samples(dataset):
    labels = dataset["cls_label_path"] or os.path.join(dataset["image_root"], "train_list.txt")
    found = []
    with open(labels, encoding="utf-8") as file:
        for line in file:
            path, label = line.split()
            pixels, _ = suite.picture(os.path.join(dataset["image_root"], path), SIZE)
            found.append((pixels, np.int64(label)))
    return found


def main():
    config = suite.configure()
    settings, loader = config["Global"], config["DataLoader"]["Train"]
    found = samples(loader["dataset"])
    model = network(settings["class_num"])
    suite.fit(
        model,
        found,
        nn.functional.cross_entropy,
        epochs=settings["epochs"],
        batch=loader["sampler"]["batch_size"],
        folder=os.path.join(settings["output_dir"], "ResNet50"),
        rate=1e-2,
        log_every=settings["print_batch_step"],
    )
    model.eval()
    guess = model(paddle.to_tensor(np.stack([pixels for pixels, _ in found]))).argmax(axis=1).numpy()
    print(f"top1: {(guess == np.array([label for _, label in found])).mean():.3f}", flush=True)


if __name__ == "__main__":
    main()

# mypy: ignore-errors
