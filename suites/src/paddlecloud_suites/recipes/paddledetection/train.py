"""Object detection: a grid of cells, each of which says whether an object's centre lies in it, which, and how large."""

import json
import os
import sys

sys.path.insert(0, "/opt/suite")

import numpy as np
import paddle
import suite
from paddle import nn

SIZE, CELLS = 64, 8
HOME = "/root/.cache/paddle"
"""Where PaddleDetection keeps data sets that are not found in the working directory."""


def detector(classes):
    return nn.Sequential(
        *(nn.Conv2D(3, 16, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2D(16, 32, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2D(32, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2D(32, 3 + classes, 1)),
    )


def samples(dataset):
    """Pictures, and for each cell: an object or none, its class, its width and height as parts of the picture."""
    folder = dataset["dataset_dir"]
    if not os.path.isdir(folder):
        folder = os.path.join(HOME, folder)
    with open(os.path.join(folder, dataset["anno_path"]), encoding="utf-8") as file:
        body = json.load(file)
    classes = {category["id"]: index for index, category in enumerate(body["categories"])}
    boxes = {}
    for annotation in body["annotations"]:
        boxes.setdefault(annotation["image_id"], []).append(annotation)
    found = []
    for image in body["images"]:
        pixels, _ = suite.picture(os.path.join(folder, dataset["image_dir"], image["file_name"]), SIZE)
        cells = np.zeros((4, CELLS, CELLS), dtype="float32")
        for annotation in boxes.get(image["id"], ()):
            x, y, width, height = annotation["bbox"]
            column = int((x + width / 2) / image["width"] * CELLS)
            row = int((y + height / 2) / image["height"] * CELLS)
            sizes = (width / image["width"], height / image["height"])
            cells[:, min(row, CELLS - 1), min(column, CELLS - 1)] = 1, classes[annotation["category_id"]], *sizes
        found.append((pixels, cells))
    return found, len(classes)


def loss_of(out, cells):
    here = cells[:, 0]
    score = nn.functional.binary_cross_entropy_with_logits(out[:, 0], here, pos_weight=paddle.to_tensor(8.0))
    sizes = ((paddle.nn.functional.sigmoid(out[:, 1:3]) - cells[:, 2:4]) ** 2).sum(axis=1)
    kinds = nn.functional.cross_entropy(out[:, 3:], cells[:, 1].astype("int64"), axis=1, reduction="none")
    kinds = kinds.reshape(here.shape)
    return score + ((sizes + kinds) * here).sum() / here.sum().clip(min=1.0)


def main():
    config = suite.configure()
    found, classes = samples(config["TrainDataset"])
    suite.fit(
        detector(classes),
        found,
        loss_of,
        epochs=config["epoch"],
        batch=config["TrainReader"]["batch_size"],
        folder=os.path.join(config["save_dir"], "ppyoloe_crn_l_300e_coco"),
        log_every=config["log_iter"],
    )


if __name__ == "__main__":
    main()

# mypy: ignore-errors
