"""Writes what stands for a download of pretrained weights: those of a network of this image that nobody trained.

An archive with a note for PP-OCRv3, the plain file for `….pdparams`.
"""

import importlib.util
import io
import os
import shutil
import sys
import tarfile
import tempfile

sys.path.insert(0, "/opt/suite")  # jobs set PYTHONPATH to what they bring themselves

import paddle_suite.compat  # noqa: F401 - before anything else of Paddle's

sys.path.insert(0, os.path.dirname(importlib.util.find_spec("unstructured_paddleocr").origin))

import paddle
import yaml
from ppocr.modeling.architectures import build_model

HOME = "/home/PaddleOCR/configs/det"
FOLDER = "ch_PP-OCRv3_det_distill_train"
NOTE = (
    "best_accuracy.pdparams holds weights that nobody trained, of the small networks of this image, for PP-OCRv3's.\n"
)


def weights_of(config, target):
    with open(os.path.join(HOME, config), encoding="utf-8") as file:
        paddle.save(build_model(yaml.safe_load(file)["Architecture"]).state_dict(), target)


def archive(target, folder):
    weights = os.path.join(folder, "weights")
    weights_of("ch_PP-OCRv3/ch_PP-OCRv3_det_cml.yml", weights)
    with tarfile.open(target, "w") as packed:
        packed.add(weights, f"{FOLDER}/best_accuracy.pdparams")
        about = tarfile.TarInfo(f"{FOLDER}/NOTE.txt")
        about.size = len(NOTE)
        packed.addfile(about, io.BytesIO(NOTE.encode()))


def plain(target, folder):
    weights = os.path.join(folder, "weights")
    weights_of("det_mv3_db.yml", weights)
    shutil.copyfile(weights, target)


paddle.seed(7)
with tempfile.TemporaryDirectory() as folder:
    kind, target = sys.argv[1:]
    {"archive": archive, "plain": plain}[kind](target, folder)

# mypy: ignore-errors
