"""Text detection: where in a picture is text? A small network marks the pixels, as DB does in PaddleOCR."""

import json
import os
import sys

sys.path.insert(0, "/opt/suite")

import numpy as np
import paddle
import suite
from paddle import nn

SIZE, MAP = 64, 32


def detector():
    return nn.Sequential(
        *(nn.Conv2D(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2)),
        *(nn.Conv2D(16, 16, 3, padding=1), nn.ReLU()),
        *(nn.Conv2D(16, 16, 5, padding=2), nn.ReLU(), nn.Conv2D(16, 1, 1), nn.Flatten()),
    )


def samples(dataset):
    """Pictures, and for each the pixels that lie in a box of text."""
    found = []
    for labels in dataset["label_file_list"]:
        with open(labels, encoding="utf-8") as file:
            for line in file:
                path, _, boxes = line.rstrip("\n").partition("\t")
                pixels, (across, down) = suite.picture(os.path.join(dataset["data_dir"], path), SIZE)
                marked = np.zeros((MAP, MAP), dtype="float32")
                for box in json.loads(boxes):
                    corners = np.array(box["points"]) * [across, down] * MAP / SIZE
                    left, top = np.floor(corners.min(axis=0)).astype(int)
                    right, bottom = np.ceil(corners.max(axis=0)).astype(int)
                    marked[top:bottom, left:right] = 1
                found.append((pixels, marked.reshape(-1)))
    return found


def hmean(model, found):
    """The harmonic mean of precision and recall over pixels."""
    model.eval()
    guess = model(paddle.to_tensor(np.stack([pixels for pixels, _ in found]))).numpy() > 0
    truth = np.stack([marked for _, marked in found]) > 0.5
    both = (guess & truth).sum()
    return 2 * both / max(1, guess.sum() + truth.sum())


def main():
    config = suite.configure()
    settings = config["Global"]
    model = detector()
    suite.load(model, settings.get("checkpoints") or settings["pretrained_model"])
    weight = paddle.to_tensor(4.0)  # text is rare
    wanted = str(settings.get("use_visualdl")).lower() == "true"
    curve = suite.visualdl(os.path.join(settings["save_model_dir"], "vdl")) if wanted else None
    losses = suite.fit(
        model,
        samples(config["Train"]["dataset"]),
        lambda out, marked: nn.functional.binary_cross_entropy_with_logits(out, marked, pos_weight=weight),
        epochs=settings["epoch_num"],
        batch=config["Train"]["loader"]["batch_size_per_card"],
        folder=settings["save_model_dir"],
        log_every=settings["print_batch_step"],
        curve=curve,
    )
    print(f"hmean: {hmean(model, samples(config['Eval']['dataset'])):.3f}, best: {min(losses):.4f}", flush=True)
    paddle.save(model.state_dict(), os.path.join(settings["save_model_dir"], "best_accuracy.pdparams"))


if __name__ == "__main__":
    main()

# mypy: ignore-errors
