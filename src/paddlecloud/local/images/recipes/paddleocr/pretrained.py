"""Writes the archive that a download of pretrained weights stands for: those of an untrained network."""

import os
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(__file__))

import paddle
import train

NAME = "ch_PP-OCRv3_det_distill_train/best_accuracy.pdparams"

paddle.seed(7)
with tempfile.TemporaryDirectory() as folder:
    weights = os.path.join(folder, "weights")
    paddle.save(train.detector().state_dict(), weights)
    with tarfile.open(sys.argv[1], "w") as archive:
        archive.add(weights, NAME)

# mypy: ignore-errors
