"""Pipelines that kfp 2 compiled (IR YAML) as Argo workflows: one pod a step, nothing of Kubeflow Pipelines' backend.

`translate` is all that others need. Everything here is pure but `launcher.py`, which runs in the pods of steps.
"""

from paddlecloud.pipelines.ir.errors import InvalidPipeline
from paddlecloud.pipelines.ir.options import Options
from paddlecloud.pipelines.ir.reader import Pipeline, read, read_documents
from paddlecloud.pipelines.ir.workflow import translate, workflow_of

__all__ = ["InvalidPipeline", "Options", "Pipeline", "read", "read_documents", "translate", "workflow_of"]
