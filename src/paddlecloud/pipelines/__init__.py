"""Pipelines of kfp 1 and kfp 2 on Argo's workflows: components, what compiled pipelines become, and KFP's API.

    from paddlecloud.pipelines import dataset, training, modelhub, serving, visualdl

inside a kfp pipeline function gives tasks of that kfp; there is no pipeline language of this project. The functions are
loaded when they are asked for: the launchers in pods need none of them. So are `run` and `client`, which are the SDK's
and for the machine where people work: nothing that runs in pods uses them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paddlecloud.pipelines.functions import (
        dataset,
        model_service,
        modelhub,
        program,
        sampleset,
        serving,
        training,
        visualdl,
    )

_COMPONENTS = ("dataset", "model_service", "modelhub", "program", "sampleset", "serving", "training", "visualdl")
_SDK = ("PipelineRun", "client", "run")

__all__ = ["dataset", "model_service", "modelhub", "program", "sampleset", "serving", "training", "visualdl"]


def __getattr__(name: str) -> Any:
    if name in _SDK:
        # By its name: this package may not import the SDK, which uses it.
        return getattr(importlib.import_module("paddlecloud.sdk.pipelines"), name)
    if name not in _COMPONENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from paddlecloud.pipelines import functions

    return getattr(functions, name)
