"""Workflow, CronWorkflow, WorkflowTemplate and ClusterWorkflowTemplate of Argo (`argoproj.io/v1alpha1`).

They belong to Argo Workflows. A cluster has them from there; the embedded platform, which runs workflows itself, serves
them by these declarations. As in Argo's own (minimal) definitions the fields are kept whole, and a status is no
subresource: clients of Argo write it with the rest, to resume, to stop or to retry.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from paddlecloud.api.fields import Embedded, Root, doc
from paddlecloud.api.kind import Column, KindDeclaration, Scope

GROUP = "argoproj.io"


class ArgoObject(Root):
    """Base of Argo's kinds, whose definitions require `metadata` and `spec`."""

    metadata: Annotated[dict[str, Any], doc("", required=True)] = msgspec.field(default_factory=dict)


class WorkflowObject(ArgoObject):
    """What is to be carried out, and how far it is."""

    spec: Annotated[Embedded | None, doc("Templates, the one to begin with, and arguments.", required=True)] = None
    status: Annotated[Embedded | None, doc("The phase of the whole, and of every node.")] = None


class CronObject(ArgoObject):
    """A workflow for each time of a schedule."""

    spec: Annotated[Embedded | None, doc("The schedule, and the workflow to run.", required=True)] = None
    status: Annotated[Embedded | None, doc("When it ran last, and which workflows are active.")] = None


class TemplateObject(ArgoObject):
    """Templates that workflows use."""

    spec: Annotated[Embedded | None, doc("Templates and their arguments.", required=True)] = None


def _declare(
    kind: str, type: type[Root], short: tuple[str, ...], doc: str, *columns: Column, scope: Scope = "Namespaced"
) -> KindDeclaration:
    return KindDeclaration(
        group=GROUP,
        versions=("v1alpha1",),
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        short_names=short,
        type=type,
        doc=doc,
        columns=columns,
        scope=scope,
        status=False,
        foreign=True,
    )


WORKFLOW = _declare(
    "Workflow",
    WorkflowObject,
    ("wf",),
    "Steps that are carried out one after the other or side by side, each in a pod.",
    Column("Status", "string", ".status.phase", description="Status of the workflow"),
    Column("Age", "date", ".status.startedAt", description="When the workflow was started"),
    Column("Message", "string", ".status.message", description="Human readable message indicating details"),
)
TEMPLATE = _declare("WorkflowTemplate", TemplateObject, ("wftmpl",), "Templates for the workflows of a namespace.")
CLUSTER_TEMPLATE = _declare(
    "ClusterWorkflowTemplate",
    TemplateObject,
    ("clusterwftmpl", "cwft"),
    "Templates for the workflows of all namespaces.",
    scope="Cluster",
)
CRON_WORKFLOW = _declare(
    "CronWorkflow",
    CronObject,
    ("cwf", "cronwf"),
    "A workflow that is run at the times of a schedule.",
    Column("Schedules", "string", ".spec.schedules", description="When it is run"),
    Column("Suspend", "boolean", ".spec.suspend", description="Whether runs are held back"),
    Column("Last Run", "date", ".status.lastScheduledTime", description="When it was run last"),
    Column("Age", "date", ".metadata.creationTimestamp", description="When it was created"),
)
KINDS = (WORKFLOW, TEMPLATE, CLUSTER_TEMPLATE, CRON_WORKFLOW)
