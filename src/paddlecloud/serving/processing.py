"""Code of the model's own around it: what clients send → tensors, tensors → what clients get.

    # process.py beside the model
    class Processor:
        def preprocess(self, inputs: dict) -> dict:            # one entry of the request's `feed`
            return {"image": read(inputs["image"])}            # arrays without the batch dimension
        def postprocess(self, outputs: dict, inputs: list) -> object:   # arrays with it; becomes `result`
            return {"label": [...]}

It is code, and runs as the server does: of a model that was fetched from elsewhere only where the deployer allows it,
whatever the archive says. Both methods are optional. They run in a thread; an exception in `preprocess` is the client's
fault (400), one in `postprocess` the server's. The tensor protocols (v2, gRPC) go past the processor.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from paddlecloud.serving.errors import BadInput, InferenceFailed, ModelError, ServingError
from paddlecloud.serving.tensors import Feeds, TensorSpec, array_of, as_lists, fitting, unfit


class Processor:
    """What happens without code of the model's own: entries are tensors, results are nested lists."""

    def preprocess(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return inputs

    def postprocess(self, outputs: Feeds, inputs: list[dict[str, Any]]) -> Any:
        return {name: as_lists(array) for name, array in outputs.items()}


def load(folder: Path, reference: str, *, allowed: bool) -> Any:
    """`process.py:Processor` below the model's folder; nothing outside of it."""
    if not reference:
        return Processor()
    if not allowed:
        raise ModelError(
            f"serving.yaml of the fetched model asks to run its own code (processor {reference!r}): code of models "
            "that are fetched is not run. If you trust where it comes from, set allowModelCode of the PaddleService "
            "(--allow-model-code); or serve a folder of your own"
        )
    file, _, name = reference.partition(":")
    path = (folder / file).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise ModelError(f"processor {reference!r}: there is no {file} in the model's folder")
    spec = importlib.util.spec_from_file_location(f"paddlecloud_processor_{abs(hash(path))}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        made = getattr(module, name or "Processor")()
    except Exception as error:
        raise ModelError(f"processor {reference!r}: {type(error).__name__}: {error}") from error
    for method in ("preprocess", "postprocess"):
        if not hasattr(made, method):
            setattr(made, method, getattr(Processor(), method))
    return made


def names_results(processor: Any) -> bool:
    """Whether it gives results names of its own, instead of those of the model's outputs."""
    return getattr(processor.postprocess, "__func__", None) is not Processor.postprocess


def prepare(processor: Any, entries: list[dict[str, Any]], inputs: tuple[TensorSpec, ...]) -> Feeds:
    """The entries of a `feed` as one batch."""
    rows: dict[str, list[Any]] = {spec.name: [] for spec in inputs}
    for entry in entries:
        try:
            ready = processor.preprocess(entry)
        except ServingError:
            raise
        except Exception as error:
            raise BadInput(f"the input cannot be processed: {type(error).__name__}: {error}") from error
        for spec in inputs:
            if spec.name not in ready:
                raise BadInput(f"feed lacks {spec.name!r}; the model takes {', '.join(rows)}")
            rows[spec.name].append(ready[spec.name])
    return {spec.name: _stacked(spec, rows[spec.name]) for spec in inputs}


def _stacked(spec: TensorSpec, values: list[Any]) -> Any:
    """One row per entry; an entry that brings the batch dimension itself is taken as it is."""
    try:
        arrays = [array_of(spec, value, datatype=spec.datatype) for value in values]
        whole = spec.shape is not None and all(array.ndim == len(spec.shape) for array in arrays)
        stacked = np.concatenate(arrays) if whole else np.stack(arrays)
    except (TypeError, ValueError) as error:
        raise unfit(spec, error) from error
    return fitting(spec, stacked)


def conclude(processor: Any, outputs: Feeds, entries: list[dict[str, Any]]) -> Any:
    try:
        return processor.postprocess(outputs, entries)
    except Exception as error:
        raise InferenceFailed(f"the result cannot be processed: {type(error).__name__}: {error}") from error
