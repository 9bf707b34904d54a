"""Writes what stands for a download of pretrained weights: those of a small network that nobody trained.

An archive with a note for PP-OCRv3, the plain file for `….pdparams`.
"""

import io
import os
import shutil
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(__file__))

import paddle
import train

FOLDER = "ch_PP-OCRv3_det_distill_train"
NOTE = b"best_accuracy.pdparams holds the weights of a small network that nobody trained, in place of PP-OCRv3's.\n"


def archive(weights, target):
    with tarfile.open(target, "w") as packed:
        packed.add(weights, f"{FOLDER}/best_accuracy.pdparams")
        about = tarfile.TarInfo(f"{FOLDER}/NOTE.txt")
        about.size = len(NOTE)
        packed.addfile(about, io.BytesIO(NOTE))


paddle.seed(7)
with tempfile.TemporaryDirectory() as folder:
    weights = os.path.join(folder, "weights")
    paddle.save(train.detector().state_dict(), weights)
    kind, target = sys.argv[1:]
    {"archive": archive, "plain": shutil.copyfile}[kind](weights, target)

# mypy: ignore-errors
