"""PaddleOCR's training: `python tools/train.py -c CONFIG -o KEY=VALUE …`."""

import _ocr

_ocr.run("train.py", parts=("Train", "Eval"))
