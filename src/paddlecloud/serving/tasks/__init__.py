"""What the inference server knows of the tasks of Paddle's suites: pictures, texts and sounds in, answers out.

    processing: {task: ocr-det, size: [160, 160]}      # in serving.yaml

It is code of the server and takes parameters only, so a model that was fetched may ask for it. A task has

    inputs, outputs        what clients send and get; tensors of one dimension, the rows
    bind(inputs, outputs)  the model's tensors; raises `ModelError` where they do not fit the task
    preprocess(entry)      one row → arrays without the batch dimension
    postprocess(arrays, entries) → for each of `outputs` a list with a value for each row
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from paddlecloud.kube.nearest import question
from paddlecloud.serving.errors import ModelError
from paddlecloud.serving.tasks.options import Options
from paddlecloud.serving.tensors import Feeds, TensorSpec, as_json


class Task(Protocol):
    @property
    def inputs(self) -> tuple[TensorSpec, ...]: ...

    @property
    def outputs(self) -> tuple[TensorSpec, ...]: ...

    def bind(self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> None: ...

    def preprocess(self, inputs: dict[str, Any]) -> dict[str, Any]: ...

    def postprocess(self, outputs: Feeds, inputs: list[dict[str, Any]]) -> dict[str, list[Any]]: ...


NAMES = ("clas", "det", "ocr-det", "ocr-rec", "seg", "sound-clas", "text-clas")


def load(folder: Path, settings: Mapping[str, Any]) -> Task:
    """The task that `processing` of serving.yaml describes."""
    name = str(settings.get("task") or "")
    if name not in NAMES:
        meant = question(name, NAMES)
        raise ModelError(
            f"serving.yaml: processing.task: {name!r} is none of {', '.join(NAMES)}" + (f": {meant}" if meant else "")
        )
    options = Options(folder, name, {str(key): value for key, value in settings.items() if key != "task"})
    made = _make(name, options)
    options.refuse_others()
    return made


def _make(name: str, options: Options) -> Task:
    from paddlecloud.serving.tasks import classes, detection, ocr_detection, ocr_recognition, segments, sounds, texts

    made: dict[str, Callable[[Options], Task]] = {
        "clas": classes.Pictures,
        "det": detection.Detection,
        "ocr-det": ocr_detection.TextBoxes,
        "ocr-rec": ocr_recognition.TextLines,
        "seg": segments.Segments,
        "sound-clas": sounds.Sounds,
        "text-clas": texts.Texts,
    }
    return made[name](options)


def entries_of(feeds: Feeds) -> list[dict[str, Any]]:
    """Rows, as `preprocess` takes them, of the tensors of a request."""
    columns = {name: list(array.reshape(-1)) for name, array in feeds.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def tensors_of(task: Task, answers: Mapping[str, list[Any]]) -> Feeds:
    """Answers as tensors: numbers and texts as they are, anything else as one JSON text for each row."""
    made: Feeds = {}
    for spec in task.outputs:
        values = answers[spec.name]
        if spec.datatype == "BYTES":
            values = [value if isinstance(value, str) else as_json(value).decode() for value in values]
        made[spec.name] = np.array(values, dtype=spec.dtype)
    return made
