"""Kinds, labels and annotations of pipelines: Argo's, Kubeflow Pipelines' and our own. Plain data."""

from __future__ import annotations

from paddlecloud.kube.argo import COMPLETED as COMPLETED
from paddlecloud.kube.argo import CRON_WORKFLOW as CRON_WORKFLOW
from paddlecloud.kube.argo import CRON_WORKFLOWS as CRON_WORKFLOWS
from paddlecloud.kube.argo import NODE_ID as NODE_ID
from paddlecloud.kube.argo import PHASE as PHASE
from paddlecloud.kube.argo import WORKFLOW as WORKFLOW
from paddlecloud.kube.argo import WORKFLOWS as WORKFLOWS

RUN_ID = "pipeline/runid"
"""KFP's label of a run. A workflow without it is a run too: its id is its uid."""
RUN_NAME = "pipelines.kubeflow.org/run_name"
"""KFP's annotation: the name that people gave to a run."""
PIPELINE_SPEC = "pipelines.kubeflow.org/pipeline_spec"
"""Annotation that kfp 1 writes into what it compiles: name, description and inputs, as JSON."""
PIPELINE_NAME = "pipelines.kubeflow.org/pipeline_name"
"""Annotation: the name of the pipeline that a workflow was made of, as kfp 1 writes it on its workflows."""
SDK_VERSION = "pipelines.kubeflow.org/kfp_sdk_version"
STARTER_PARAMETER = "pipeline-launcher"
"""Parameter of a workflow that was made of kfp 2's IR: the text of the step starter (`ir/step_starter.py`), kept once
for all steps. Its name is stored in workflows and stays as it is."""

RESUBMITTED_FROM = "workflows.argoproj.io/resubmitted-from-workflow"
"""Argo's label of a workflow that repeats another one: the other one's name."""

KIND = "pipelines.paddlecloud.org/kind"
"""Label of a ConfigMap: experiment, pipeline or version."""
ID = "pipelines.paddlecloud.org/id"
"""Label: the id under which the API names the object."""
EXPERIMENT_ID = "pipelines.paddlecloud.org/experiment-id"
PIPELINE_ID = "pipelines.paddlecloud.org/pipeline-id"
VERSION_ID = "pipelines.paddlecloud.org/pipeline-version-id"
RECURRING_ID = "pipelines.paddlecloud.org/recurring-run-id"
STORAGE_STATE = "pipelines.paddlecloud.org/storage-state"
"""Label: ARCHIVED for what was archived, absent otherwise."""
DISPLAY_NAME = "pipelines.paddlecloud.org/display-name"
DESCRIPTION = "pipelines.paddlecloud.org/description"
PARAMETERS = "pipelines.paddlecloud.org/parameters"
"""Annotation of a run of kfp 2: the parameters it was given, as JSON with their types."""
INPUTS = "pipelines.paddlecloud.org/inputs"
"""Annotation of a run of kfp 2: types and allowed values of the pipeline's parameters, as JSON, for a resubmission."""
MAX_CONCURRENCY = "pipelines.paddlecloud.org/max-concurrency"
DEFAULT_VERSION = "pipelines.paddlecloud.org/default-version"
"""Annotation of a pipeline: the id of the version that runs when none is named."""

SYSTEM_NAMESPACE = "kubeflow"
"""Where Kubeflow Pipelines runs pipelines when nobody names a namespace, as the manual expects."""
SERVICE = "ml-pipeline"
SERVICE_PORT = 8888
"""The Service's name and port that kfp's clients use inside pods."""
USER = "pipeline-user"
"""The account whose tokens `pdc pipeline login` gives to kfp, on the embedded platform."""
RUNNER = "pipeline-runner"
"""The ServiceAccount that kfp 1 writes into what it compiles, and that the manual names."""
