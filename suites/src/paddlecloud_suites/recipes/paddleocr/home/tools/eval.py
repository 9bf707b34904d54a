"""PaddleOCR's evaluation: `python tools/eval.py -c CONFIG -o Global.checkpoints=output/best_accuracy`."""

import _ocr

_ocr.run("eval.py", parts=("Eval",))
