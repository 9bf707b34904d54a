"""Pipelines that kfp 2 compiled (IR YAML) as Argo workflows: one pod a step, nothing of Kubeflow Pipelines' backend.

`translate` is what others need, and `argument_of` to change an argument afterwards. Everything here is pure but
`step_starter.py`, which runs in the pods of steps.
"""

from paddlecloud.pipelines.ir.errors import InvalidPipeline
from paddlecloud.pipelines.ir.options import PipelineOptions
from paddlecloud.pipelines.ir.reader import Pipeline, read, read_documents
from paddlecloud.pipelines.ir.workflow import argument_of, translate, workflow_of

__all__ = [
    "InvalidPipeline",
    "Pipeline",
    "PipelineOptions",
    "argument_of",
    "read",
    "read_documents",
    "translate",
    "workflow_of",
]
