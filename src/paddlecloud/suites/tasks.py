"""The tasks for which there are folders: which suite, its own commands, what its evaluation prints, how it is asked.

`WORK` in a command is the folder of the training on the shared volume. Commands are in the suite's own grammar.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Parameter:
    """A hyper-parameter of the pipeline."""

    name: str
    type: str
    default: str


@dataclass(frozen=True)
class SuiteTask:
    suite: str
    image: str
    title: str
    zh: str
    samples: str
    """Format of `pdc sample-data`."""
    train: str
    evaluate: str
    export: str
    exported: str
    """Folder with the exported model, below that of the training."""
    changes: str
    """What follows the command of the training, with the parameters in braces."""
    parameters: tuple[Parameter, ...]
    metric: str
    pattern: str
    request: str
    """Flags of `paddlecloud.suites.asking`."""
    trials: dict[str, str]
    """Of a sweep: names, and what follows the command of the training."""
    beside: tuple[str, ...] = ()
    """Files of the samples that belong to the model."""
    less: bool = field(default=False)

    @property
    def epochs(self) -> str:
        return self.parameters[0].name


def _first(*files: str) -> str:
    """A shell line: the weights to go on with, without their ending."""
    found = " ".join(f"WORK/output/{file}.pdparams" for file in files)
    return f"weights=$(ls {found} 2>/dev/null | head -n 1)\nweights=${{weights%.pdparams}}\n"


OCR_WEIGHTS = _first("best_accuracy", "latest")

TASKS = {
    "ocr-det": SuiteTask(
        suite="PaddleOCR",
        image="paddlecloud/paddleocr:2.10",
        title="Detection of text in pictures",
        zh="文本检测",
        samples="icdar",
        train="python tools/train.py -c $CONFIG -o Global.save_model_dir=WORK/output/",
        evaluate=OCR_WEIGHTS + "python tools/eval.py -c $CONFIG -o Global.checkpoints=$weights",
        export=OCR_WEIGHTS + "python tools/export_model.py -c $CONFIG -o Global.pretrained_model=$weights "
        "Global.save_inference_dir=WORK/inference",
        exported="inference",
        changes="Global.epoch_num={epochs} Optimizer.lr.learning_rate={learning_rate}",
        parameters=(Parameter("epochs", "int", "30"), Parameter("learning_rate", "float", "0.01")),
        metric="hmean",
        pattern=r"hmean: ?([0-9.e-]+)",
        request="--input image --file /data/img/val0.png",
        trials={
            "slow": "Global.epoch_num=30 Optimizer.lr.learning_rate=0.002",
            "fast": "Global.epoch_num=30 Optimizer.lr.learning_rate=0.01",
        },
    ),
}
