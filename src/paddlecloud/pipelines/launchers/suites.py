"""What training, exporting and packing run for each Paddle suite: shell lines. Pure.

Every value is quoted for the shell. The weights that are exported are those that training wrote (`best_accuracy`, else
`latest`): PaddleOCR's programs load `Global.checkpoints` first and `Global.pretrained_model` otherwise, and the
original passed the weights that training had begun with.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.pipelines.launchers.hub_version import RECORD
from paddlecloud.pipelines.launchers.objects import TASK_CENTER

DATA_CENTER = "/mnt/data-center"
MODELS, INFERENCE = f"{TASK_CENTER}/models", f"{TASK_CENTER}/inference"
ORIGIN = "PADDLECLOUD_MODEL_ORIGIN"
"""Variable of the container that packs a model: what is known of its origin (`hub_version.ModelRecord`)."""
PRETRAINED = f"{TASK_CENTER}/pretrain_model"


@dataclass(frozen=True)
class Training:
    """The inputs of a training, as a suite's programs need them."""

    config: str
    changes: tuple[str, ...]
    pretrained_url: str
    dataset: str
    train_label: str
    test_label: str
    workers: int
    gpus: int
    """Of each worker."""
    visualdl: bool


@dataclass(frozen=True)
class Suite:
    train: Callable[[Training], str]
    export: Callable[[Training], str]


def changes(text: str) -> tuple[str, ...]:
    """`A.b=1,C.d=[1,2]`: commas inside brackets and quotes belong to a value."""
    parts, depth, quote, begin = [], 0, "", 0
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[{(":
            depth += 1
        elif char in "]})":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[begin:index])
            begin = index + 1
    parts.append(text[begin:])
    found = tuple(part.strip() for part in parts if part.strip())
    for one in found:
        if "=" not in one:
            raise StepFailed(f"config_changes: {one!r} is not KEY=VALUE")
    return found


def pretrained_stem(url: str) -> str:
    """The path that a suite gives as `pretrained_model`: without the extension of the weights' file."""
    name = posixpath.basename(urlsplit(url).path)
    if not name.endswith(".pdparams"):
        raise StepFailed(f"pretrain_model: {url} is no .pdparams file, which is what training begins with")
    return f"{PRETRAINED}/{name[: -len('.pdparams')]}"


def download(url: str) -> str:
    """Workers share the volume: each fetches a file of its own and moves it to its place, unless it is there."""
    target = f"{pretrained_stem(url)}.pdparams"
    part = f'{shlex.quote(target)}."$HOSTNAME"'
    fetch = f"wget -O {part} {shlex.quote(url)} && mv {part} {shlex.quote(target)}"
    return f"mkdir -p {PRETRAINED} && {{ [ -s {shlex.quote(target)} ] || {{ {fetch}; }}; }}"


def _ocr_options(training: Training) -> list[str]:
    return [*training.changes, f"Global.save_model_dir={MODELS}/", f"Global.save_inference_dir={INFERENCE}/"]


def _ocr_train(training: Training) -> str:
    data = f"{DATA_CENTER}/{training.dataset}/"
    options = _ocr_options(training)
    if training.visualdl:
        options.append("Global.use_visualdl=True")
    if training.pretrained_url:
        options.append(f"Global.pretrained_model={pretrained_stem(training.pretrained_url)}")
    for part, label in (("Train", training.train_label), ("Eval", training.test_label)):
        options.append(f"{part}.dataset.data_dir={data}")
        if label:
            options.append(f'{part}.dataset.label_file_list=["{data}{label}"]')
    python = "python"
    if training.gpus * training.workers > 1:  # one process needs no paddle.distributed.launch
        numbers = ",".join(str(number) for number in range(training.gpus))
        python = f"python -m paddle.distributed.launch --gpus {numbers} --log_dir {TASK_CENTER}"
    lines = [download(training.pretrained_url)] if training.pretrained_url else []
    lines.append(f"{python} tools/train.py -c {shlex.quote(training.config)} -o {shlex.join(options)}")
    return " && ".join(lines)


def _ocr_export(training: Training) -> str:
    options = f'Global.checkpoints="$weights" Global.pretrained_model="$weights" {shlex.join(_ocr_options(training))}'
    return (
        f"weights={MODELS}/best_accuracy; [ -e $weights.pdparams ] || weights={MODELS}/latest; "
        f"python tools/export_model.py -c {shlex.quote(training.config)} -o {options}"
    )


def pack(name: str) -> str:
    """For Paddle Serving: a folder `server`, a folder `client`, and both in NAME.tar.gz."""
    folder = shlex.quote(f"{TASK_CENTER}/{name}")
    return (
        f"rm -rf {folder} && mkdir {folder} && "
        f"python3 -m paddle_serving_client.convert --dirname {INFERENCE} --model_filename inference.pdmodel "
        f"--params_filename inference.pdiparams --serving_server {folder}/server --serving_client {folder}/client && "
        f"tar czf {folder}.tar.gz.part -C {TASK_CENTER} {shlex.quote(name)} && mv {folder}.tar.gz.part {folder}.tar.gz"
        f' && printf %s "${ORIGIN}" > {folder}{RECORD}'
    )


SUITES = {"paddleocr": Suite(_ocr_train, _ocr_export)}


def find(project: str) -> Suite:
    suite = SUITES.get(project.strip().lower())
    if suite is None:
        raise StepFailed(f"project: {project!r} cannot be trained by this component; it knows {', '.join(SUITES)}")
    return suite
