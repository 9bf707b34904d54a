"""The Workflow of one time of a CronWorkflow's schedule, as Argo's `ConvertCronWorkflowToWorkflow` makes it. Pure."""

from __future__ import annotations

import copy
from typing import Any

from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.resource import Object, owner_reference
from paddlecloud.local.workflow.names import CRON_WORKFLOW, SCHEDULED_TIME, WORKFLOWS

_INHERITED = (
    "workflows.argoproj.io/creator",
    "workflows.argoproj.io/creator-email",
    "workflows.argoproj.io/creator-preferred-username",
)


def workflow_name(cron: Object, due: float) -> str:
    return f"{cron['metadata']['name']}-{int(due)}"


def workflow_for(cron: Object, due: float) -> Object:
    meta, given = cron["metadata"], cron["spec"].get("workflowMetadata") or {}
    own = meta.get("labels") or {}
    made: dict[str, Any] = {
        "name": workflow_name(cron, due),
        "namespace": meta["namespace"],
        "labels": {
            **{key: own[key] for key in _INHERITED if key in own},
            CRON_WORKFLOW: meta["name"],
            **(given.get("labels") or {}),
        },
        "annotations": {SCHEDULED_TIME: rfc3339(due), **(given.get("annotations") or {})},
        "ownerReferences": [owner_reference(cron)],
    }
    if given.get("finalizers"):
        made["finalizers"] = list(given["finalizers"])
    spec = copy.deepcopy(cron["spec"].get("workflowSpec") or {})
    return {"apiVersion": WORKFLOWS.api_version, "kind": WORKFLOWS.kind, "metadata": made, "spec": spec}


def due_time_of(cron: Object, workflow: Object) -> float | None:
    """The time a Workflow was made for; None for one that the schedule did not make (`argo submit --from`)."""
    written = (workflow["metadata"].get("annotations") or {}).get(SCHEDULED_TIME)
    try:
        due = parse_rfc3339(str(written))
    except ValueError:
        return None
    return due if workflow["metadata"]["name"] == workflow_name(cron, due) else None


def reference_to(workflow: Object) -> Object:
    meta = workflow["metadata"]
    return {
        "apiVersion": WORKFLOWS.api_version,
        "kind": WORKFLOWS.kind,
        "name": meta["name"],
        "namespace": meta["namespace"],
        "uid": meta["uid"],
        "resourceVersion": meta["resourceVersion"],
    }
