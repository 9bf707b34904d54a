"""Writes the archive that stands for a download of pretrained weights: those of a small network that nobody trained."""

import io
import os
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(__file__))

import paddle
import train

FOLDER = "ch_PP-OCRv3_det_distill_train"
NOTE = b"best_accuracy.pdparams holds the weights of a small network that nobody trained, in place of PP-OCRv3's.\n"

paddle.seed(7)
with tempfile.TemporaryDirectory() as folder:
    weights = os.path.join(folder, "weights")
    paddle.save(train.detector().state_dict(), weights)
    with tarfile.open(sys.argv[1], "w") as archive:
        archive.add(weights, f"{FOLDER}/best_accuracy.pdparams")
        about = tarfile.TarInfo(f"{FOLDER}/NOTE.txt")
        about.size = len(NOTE)
        archive.addfile(about, io.BytesIO(NOTE))

# mypy: ignore-errors
