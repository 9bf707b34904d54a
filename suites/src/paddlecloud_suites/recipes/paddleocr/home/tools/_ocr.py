"""Runs a program of PaddleOCR's own tools, after a look at its configuration and at the first lines of its data.

PaddleOCR takes a misspelt key without a word, and tries line after line for ever when a label file has another format.
"""

import argparse
import importlib.util
import json
import os
import runpy
import sys

sys.path.insert(0, "/opt/suite")  # jobs set PYTHONPATH to what they bring themselves

import paddle_suite.compat  # before anything else of Paddle's
from paddle_suite import config_keys
from paddle_suite.errors import refuse
from paddle_suite.progress import Progress
from paddle_suite.restarts import point_of, saves_of

SUITE = os.path.dirname(importlib.util.find_spec("unstructured_paddleocr").origin)
LOOKED_AT = 20
"""Lines of a label file."""
LOGGER = 7
"""Where the logger is among the arguments of PaddleOCR's training, behind the loss."""


def run(program, parts=()):
    """`parts` are the sections whose data is read: Train, Eval."""
    sys.path.insert(0, SUITE)
    config = arguments()
    for part in parts:
        check_data(config, part)
    if program == "train.py":
        paddle_suite.compat.whole_saves()
        go_on(config)
        watch_training()
    target = os.path.join(SUITE, "tools", program)
    sys.argv[0] = target
    runpy.run_path(target, run_name="__main__")


def arguments():
    """The configuration with its changes, merged by PaddleOCR's own code; a key it does not know is refused first."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-c", "--config")
    parser.add_argument("-o", "--opt", nargs="+", default=[])
    chosen, _ = parser.parse_known_args()
    if chosen.config is None:
        if "-h" not in sys.argv and "--help" not in sys.argv:
            refuse("which configuration? -c configs/tiny/det.yml, for one")
        return {}
    config = config_keys.read(chosen.config)
    config_keys.check(chosen.opt, config, path=chosen.config, source=SUITE)
    from tools.program import ArgsParser, merge_config

    merged = merge_config(config, ArgsParser()._parse_opt(chosen.opt))
    merged["path"] = chosen.config
    weights = merged["Global"].get("checkpoints") or merged["Global"].get("pretrained_model")
    if weights and not os.path.exists(f"{weights.removesuffix('.pdparams')}.pdparams"):
        key = "checkpoints" if merged["Global"].get("checkpoints") else "pretrained_model"
        refuse(f"Global.{key}={weights}: there is no {weights}.pdparams; name weights without .pdparams")
    return merged


def go_on(config):
    """A restarted job's checkpoint, where PaddleOCR reads the configuration."""
    weights = point_of(config["Global"]["save_model_dir"], "latest")
    if weights and not config["Global"].get("checkpoints"):
        from tools import program

        load = program.load_config

        def loaded(path):
            found = load(path)
            found["Global"]["checkpoints"] = weights
            return found

        program.load_config = loaded


def check_data(config, part):
    dataset = (config.get(part) or {}).get("dataset") or {}
    if dataset.get("name") != "SimpleDataSet":
        return
    files = dataset.get("label_file_list") or []
    for path in [files] if isinstance(files, str) else files:
        if not os.path.isfile(path):
            refuse(f"{part}.dataset.label_file_list: there is no file {path}; set it with -o, or mount the data there")
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in zip(range(1, LOOKED_AT + 1), file, strict=False):
                check_line(config, part, path, number, line.rstrip("\n"))


def check_line(config, part, path, number, line):
    picture, tab, label = line.partition(config[part]["dataset"].get("delimiter", "\t"))
    if not tab:
        refuse(
            f"{path}:{number}: PaddleOCR's label files have PICTURE, a tab and a label in each line; got {line[:60]!r}"
        )
    if config["Architecture"].get("model_type") == "det":
        check_boxes(path, number, label)
    whole = os.path.join(config[part]["dataset"]["data_dir"], picture)
    if not picture.startswith("[") and not os.path.isfile(whole):
        refuse(f"{path}:{number}: there is no picture {whole}; {part}.dataset.data_dir is where such paths begin")


def check_boxes(path, number, label):
    try:
        fits = all({"transcription", "points"} <= set(box) for box in json.loads(label))
    except (ValueError, TypeError):
        fits = False
    if not fits:
        refuse(
            f"{path}:{number}: the label of text detection is a JSON list of "
            f'{{"transcription": "text", "points": [[x, y], …]}}; got {label[:60]!r}'
        )


def watch_training():
    """Report to the job, and to VisualDL where it is asked for."""
    from paddle import distributed

    from tools import program

    train = program.train

    def watched(config, loader, valid, device, model, loss, *rest):
        progress = Progress(config["Global"]["epoch_num"] * len(loader))
        loss.register_forward_post_hook(lambda layer, inputs, found: progress.done(found["loss"]))
        rest = list(rest)
        if config["Global"].get("use_visualdl") and distributed.get_rank() == 0:
            from _visualdl import VisualDL

            rest[LOGGER] = VisualDL(config["Global"]["save_model_dir"])
        program.save_model = saves_of(program.save_model, config["Global"]["save_model_dir"], "latest", progress)
        return train(config, loader, valid, device, model, loss, *rest)

    program.train = watched


# mypy: ignore-errors
