"""`podDisruptionBudget`: a budget that is made with a workflow, and deleted when it is over. Pure.

As Argo's `createPDBResource` (workflow/controller/operator.go): it has the name of the workflow and, without a selector
of its own, is about the workflow's pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import PODDISRUPTIONBUDGETS, Object, owner_reference
from paddlecloud.local.workflow.decision import deletion
from paddlecloud.local.workflow.names import WORKFLOW


def create(plan: Plan, workflow: Object, spec: Mapping[str, Any], budgets: Sequence[Object]) -> None:
    """`budgets` are those that the workflow owns already."""
    given = spec.get("podDisruptionBudget")
    if not given or budgets:
        return
    meta = workflow["metadata"]
    labels = {WORKFLOW: meta["name"]}
    plan.create.append({
        "apiVersion": PODDISRUPTIONBUDGETS.api_version,
        "kind": PODDISRUPTIONBUDGETS.kind,
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(workflow)],
        },
        "spec": {"selector": {"matchLabels": labels}, **given},
    })  # fmt: skip


def delete(plan: Plan, spec: Mapping[str, Any], budgets: Iterable[Object]) -> None:
    """`budgets` are those that the workflow owns."""
    for budget in budgets if spec.get("podDisruptionBudget") else ():
        deletion.delete(plan, PODDISRUPTIONBUDGETS, budget)
