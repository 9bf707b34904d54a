"""The trained detector for inference: `inference.pdmodel` and `inference.pdiparams`, as PaddleOCR 2 writes them.

Weights are found as PaddleOCR does: `Global.checkpoints` first, else `Global.pretrained_model`.
"""

import os
import sys

# Paddle 3 would write inference.json, which Paddle Serving does not know.
os.environ["FLAGS_enable_pir_api"] = "0"  # noqa: SIM112 - Paddle's own spelling
sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, "/opt/suite")

import paddle
import suite
import train


def main():
    settings = suite.configure()["Global"]
    model = train.detector()
    suite.load(model, settings.get("checkpoints") or settings["pretrained_model"], what="the export is made")
    model.eval()
    target = os.path.join(settings["save_inference_dir"], "inference")
    spec = paddle.static.InputSpec([None, 3, train.SIZE, train.SIZE], "float32", name="x")
    paddle.jit.save(model, target, input_spec=[spec])
    print(f"inference model is saved to {target}", flush=True)


if __name__ == "__main__":
    main()

# mypy: ignore-errors
