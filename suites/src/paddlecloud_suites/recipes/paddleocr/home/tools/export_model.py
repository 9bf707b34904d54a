"""PaddleOCR's export: `tools/export_model.py -c CONFIG -o Global.pretrained_model=… Global.save_inference_dir=…`.

It writes `inference.pdmodel` and `inference.pdiparams`, which Paddle Serving reads, or with
Global.export_with_pir=True the format of Paddle 3, `inference.json`.
"""

import _ocr
import paddle_suite.compat

paddle_suite.compat.export_for_paddle_2()

_ocr.run("export_model.py")
