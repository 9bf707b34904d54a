"""PaddleClas's engine by its own arguments, after a look at the configuration and at the first lines of the data.

The package `paddleclas` holds the engine and not the suite's programs, so these are its counterparts.
"""

import importlib
import importlib.util
import os
import sys

sys.path.insert(0, "/opt/suite")  # jobs set PYTHONPATH to what they bring themselves

import paddle_suite.compat
from paddle_suite import config_keys
from paddle_suite.errors import refuse
from paddle_suite.progress import Progress
from paddle_suite.restarts import point_of, saves_of

paddle_suite.compat.numbers_of_tensors()
SUITE = os.path.dirname(importlib.util.find_spec("paddleclas").origin)
sys.path.insert(0, SUITE)
LOOKED_AT = 20
"""Lines of a list of pictures."""


def engine(mode, parts=()):
    """`parts` are the sections of DataLoader whose data is read: Train, Eval."""
    from ppcls.engine.engine import Engine
    from ppcls.utils import config as configuration

    chosen = configuration.parse_args()
    if chosen.config is None:
        refuse("which configuration? -c configs/tiny/clas.yml, for one")
    body = config_keys.read(chosen.config)
    config_keys.check(chosen.override or [], body, path=chosen.config, source=os.path.join(SUITE, "ppcls"))
    config = configuration.get_config(chosen.config, overrides=chosen.override, show=False)
    config.profiler_options = chosen.profiler_options
    for part in parts:
        if part == "Train" or mode != "train" or config["Global"]["eval_during_train"]:
            check_data(config, part)
    folder = os.path.join(config["Global"]["output_dir"], config["Arch"]["name"])
    if mode == "train":
        paddle_suite.compat.whole_saves()
        config.Global.checkpoints = config.Global.checkpoints or point_of(folder, "latest")
    check_weights(config["Global"])
    made = Engine(config, mode=mode)
    if mode == "train":
        watch(made, folder)
    return made


def check_weights(settings):
    for key in ("checkpoints", "pretrained_model"):
        weights = settings.get(key)
        if weights and not weights.startswith("http") and not os.path.exists(f"{weights}.pdparams"):
            refuse(f"Global.{key}={weights}: there is no {weights}.pdparams; name weights without .pdparams")


def check_data(config, part):
    dataset = config["DataLoader"][part]["dataset"]
    if dataset["name"] != "ImageNetDataset":
        return
    key = f"DataLoader.{part}.dataset.cls_label_path"
    path = dataset["cls_label_path"]
    if not path:
        path = dataset["cls_label_path"] = os.path.join(dataset["image_root"], f"{part.lower()}_list.txt")
    if not os.path.isfile(path):
        refuse(f"{key}: there is no file {path}; set it with -o, or mount the data there")
    classes = config["Arch"].get("class_num") or config["Global"].get("class_num")
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in zip(range(1, LOOKED_AT + 1), file, strict=False):
            check_line(
                line.strip().split(dataset.get("delimiter", " ")), f"{path}:{number}", dataset["image_root"], classes
            )


def check_line(words, where, root, classes):
    if len(words) != 2 or not words[1].isdigit():
        refuse(f"{where}: PaddleClas's lists have PICTURE NUMBER in each line; got {' '.join(words)[:60]!r}")
    if classes and int(words[1]) >= classes:
        refuse(f"{where}: class {words[1]} of {classes}, which count from 0; Arch.class_num says how many")
    if not os.path.isfile(os.path.join(root, words[0])):
        refuse(f"{where}: there is no picture {os.path.join(root, words[0])}; image_root is where such paths begin")


def watch(made, folder):
    """Report to the job after every step, and remember what was saved for it to begin from when it is restarted."""
    from ppcls.utils import save_load

    progress = Progress(made.config["Global"]["epochs"] * len(made.train_dataloader))
    steps = importlib.import_module("ppcls.engine.train.train")
    noted = steps.update_loss  # the loss itself runs no hooks: it has a __call__ of its own

    def reported(engine, losses, size):
        progress.done(losses["loss"])
        return noted(engine, losses, size)

    steps.update_loss = reported
    save_load.save_model = saves_of(save_load.save_model, folder, "latest", progress)


# mypy: ignore-errors
