"""PaddleClas's training: `python tools/train.py -c CONFIG -o Global.epochs=4 -o …`, one `-o` for each key."""

from _clas import engine

engine("train", parts=("Train", "Eval")).train()
