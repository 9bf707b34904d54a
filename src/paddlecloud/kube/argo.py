"""Names of Argo Workflows: kinds, labels, annotations, phases. Plain data.

The embedded platform writes them, `pipelines` and the SDK read them, also on a cluster with Argo itself.
"""

from __future__ import annotations

from paddlecloud.api.argo import GROUP
from paddlecloud.kube.resource import Resource

WORKFLOWS = Resource(GROUP, "v1alpha1", "workflows", "Workflow")
TEMPLATES = Resource(GROUP, "v1alpha1", "workflowtemplates", "WorkflowTemplate")
CLUSTER_TEMPLATES = Resource(GROUP, "v1alpha1", "clusterworkflowtemplates", "ClusterWorkflowTemplate", namespaced=False)
CRON_WORKFLOWS = Resource(GROUP, "v1alpha1", "cronworkflows", "CronWorkflow")

WORKFLOW = "workflows.argoproj.io/workflow"
"""Label of a pod: the workflow it belongs to."""
COMPLETED = "workflows.argoproj.io/completed"
PHASE = "workflows.argoproj.io/phase"
"""Label of a workflow: its phase, so that lists need not read the status."""
NODE_ID = "workflows.argoproj.io/node-id"
NODE_NAME = "workflows.argoproj.io/node-name"
POD_NAMES = "workflows.argoproj.io/pod-name-format"
CONFIG_MAP_TYPE = "workflows.argoproj.io/configmap-type"
CRON_WORKFLOW = "workflows.argoproj.io/cron-workflow"
"""Label of a workflow that a CronWorkflow made."""
CRON_COMPLETED = "workflows.argoproj.io/cron-workflow-completed"
SCHEDULED_TIME = "workflows.argoproj.io/scheduled-time"
LAST_SCHEDULE = "cronworkflows.argoproj.io/last-used-schedule"

PENDING, RUNNING = "Pending", "Running"
SUCCEEDED, FAILED, ERROR, SKIPPED, OMITTED = "Succeeded", "Failed", "Error", "Skipped", "Omitted"
OVER = frozenset((SUCCEEDED, FAILED, ERROR, SKIPPED, OMITTED))
"""Phases of nodes and workflows that nothing follows."""
