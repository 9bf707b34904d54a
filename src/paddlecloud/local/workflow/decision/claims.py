"""`volumeClaimTemplates`: claims that are made with a workflow, and deleted when it is over. Pure.

As Argo's `createPVCs` and `deletePVCs`: a claim is called `WORKFLOW-TEMPLATE`, belongs to the workflow, and is in its
status as a volume that pods mount by the name of the template.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import PERSISTENTVOLUMECLAIMS, Object, owner_reference
from paddlecloud.local.workflow.decision import deletion
from paddlecloud.local.workflow.nodes import SUCCEEDED
from paddlecloud.local.workflow.observed import Observed
from paddlecloud.local.workflow.templates import TemplateError

STATUS = "persistentVolumeClaims"


def volumes_for(workflow: Object, spec: Mapping[str, Any]) -> list[Object]:
    return [
        {"name": each["metadata"]["name"], "persistentVolumeClaim": {"claimName": _name(workflow, each)}}
        for each in spec.get("volumeClaimTemplates") or ()
    ]


def _name(workflow: Object, template: Mapping[str, Any]) -> str:
    return f"{workflow['metadata']['name']}-{template['metadata']['name']}"


def create(plan: Plan, workflow: Object, spec: Mapping[str, Any], status: Object, observed: Observed) -> None:
    """Raises `TemplateError` where the API server refused one."""
    if not spec.get("volumeClaimTemplates"):
        return
    known = {claim["metadata"]["name"] for claim in observed.claims}
    for template in spec["volumeClaimTemplates"]:
        meta = template["metadata"]
        name = _name(workflow, template)
        if name in known:
            continue
        if name in observed.refused:
            raise TemplateError(f"pvc create error: {observed.refused[name]}")
        plan.create.append({
            "apiVersion": PERSISTENTVOLUMECLAIMS.api_version,
            "kind": PERSISTENTVOLUMECLAIMS.kind,
            "metadata": {
                "name": name,
                "namespace": workflow["metadata"]["namespace"],
                **{key: dict(meta[key]) for key in ("labels", "annotations") if meta.get(key)},
                "ownerReferences": [owner_reference(workflow)],
            },
            "spec": template.get("spec") or {},
        })  # fmt: skip
    status[STATUS] = volumes_for(workflow, spec)


def delete(plan: Plan, spec: Mapping[str, Any], phase: str, claims: Iterable[Object]) -> None:
    """`claims` are those that the workflow owns. Without a strategy they stay where the workflow did not succeed."""
    strategy = (spec.get("volumeClaimGC") or {}).get("strategy") or "OnWorkflowSuccess"
    if not spec.get("volumeClaimTemplates") or (strategy == "OnWorkflowSuccess" and phase != SUCCEEDED):
        return
    for claim in claims:
        deletion.delete(plan, PERSISTENTVOLUMECLAIMS, claim)
