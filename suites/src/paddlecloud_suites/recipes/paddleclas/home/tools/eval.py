"""PaddleClas's evaluation: `python tools/eval.py -c CONFIG -o Global.pretrained_model=output/…/best_model`."""

from _clas import engine

print(f"metric: {engine('eval', parts=('Eval',)).eval():.5f}")
