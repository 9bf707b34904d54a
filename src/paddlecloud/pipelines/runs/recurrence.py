"""The CronWorkflow of a recurring run: the Workflow of one run, and when it begins. Pure."""

from __future__ import annotations

from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs.schedule import Trigger

CATCH_UP_SECONDS = 60
"""A run that was missed by no more, while the controller was down, is begun; earlier ones are left out."""


def cron_workflow(
    workflow: Object, own_id: str, name: str, trigger: Trigger, *, enabled: bool = True, at_once: int = 1
) -> Object:
    """`at_once` runs may run at the same time: 1 is Argo's Forbid. Argo has no other number: more is Allow."""
    meta = workflow["metadata"]
    carried = dict(meta.get("labels") or {})
    return {
        "apiVersion": names.CRON_WORKFLOWS.api_version,
        "kind": names.CRON_WORKFLOWS.kind,
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": {**carried, names.ID: own_id},
            "annotations": {
                **(meta.get("annotations") or {}),
                names.DISPLAY_NAME: name,
                names.MAX_CONCURRENCY: str(at_once),
            },
        },
        "spec": {
            "schedules": [trigger.schedule],
            "timezone": "UTC",
            "suspend": not enabled,
            "concurrencyPolicy": "Forbid" if at_once == 1 else "Allow",
            "startingDeadlineSeconds": CATCH_UP_SECONDS,
            "successfulJobsHistoryLimit": 20,
            "failedJobsHistoryLimit": 20,
            "workflowMetadata": {"labels": carried, "annotations": dict(meta.get("annotations") or {})},
            "workflowSpec": workflow["spec"],
        },
    }
