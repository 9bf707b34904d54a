"""How all decisions about workflows delete: what was observed, and nothing that is being deleted already. Pure."""

from __future__ import annotations

from paddlecloud.kube.plan import Delete, Plan
from paddlecloud.kube.resource import Object, Resource


def delete(plan: Plan, resource: Resource, obj: Object) -> None:
    """By its uid: another object that has got its name since stays."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp"):
        plan.delete.append(Delete(resource, meta["name"], meta["namespace"], uid=meta["uid"]))
