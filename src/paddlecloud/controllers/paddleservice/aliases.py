"""Services under names that do not change with revisions, for clients that dial the pods themselves. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from paddlecloud.api.names import SERVICE
from paddlecloud.controllers.paddleservice.names import aliases
from paddlecloud.kube.plan import Delete, Patch, Plan
from paddlecloud.kube.resource import SERVICES, Object


def apply_to_plan(
    plan: Plan,
    owner: Object,
    reference: Object,
    present: Mapping[str, Object],
    wanted: Mapping[str, tuple[Object, int]],
) -> None:
    """`wanted` gives for each endpoint the labels of its pods and their port."""
    meta = owner["metadata"]
    names = {name: target for endpoint, target in wanted.items() for name in aliases(meta["name"], endpoint)}
    for name, (labels, port) in names.items():
        spec = {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": port, "protocol": "TCP"}]}
        current = present.get(name)
        if current is None:
            plan.create.append(
                {
                    "apiVersion": SERVICES.api_version,
                    "kind": SERVICES.kind,
                    "metadata": {
                        "name": name,
                        "namespace": meta["namespace"],
                        "labels": {SERVICE: meta["name"]},
                        "ownerReferences": [reference],
                    },
                    "spec": spec,
                }
            )
        elif _differs(current["spec"], spec):
            seen = current["metadata"].get("resourceVersion")
            operations = [{"op": "replace", "path": f"/spec/{field}", "value": value} for field, value in spec.items()]
            plan.patch.append(Patch(SERVICES, name, meta["namespace"], operations, kind="json", seen=seen))
    stale = [name for endpoint in ("default", "canary") for name in aliases(meta["name"], endpoint)]
    for name in stale:
        if name in present and name not in names:
            plan.delete.append(Delete(SERVICES, name, meta["namespace"], uid=present[name]["metadata"].get("uid")))


def _differs(current: Object, wanted: Object) -> bool:
    port = (current.get("ports") or [{}])[0]
    return bool(
        current.get("selector") != wanted["selector"] or port.get("targetPort") != wanted["ports"][0]["targetPort"]
    )
