"""The pod of a node, made of its template, the workflow and the patches of both. Pure.

What its state says of the node is in `node_state`, its containers are in `containers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from paddlecloud.kube.resource import PODS, Object, owner_reference
from paddlecloud.local.workflow.decision.claims import volumes_for
from paddlecloud.local.workflow.names import COMPLETED, NODE_ID, NODE_NAME, WORKFLOW, pod_name
from paddlecloud.local.workflow.nodes import Node
from paddlecloud.local.workflow.pods.containers import INIT, MAIN, containers_of, volumes_of
from paddlecloud.local.workflow.pods.spec_patch import patched, patches_of, with_commands
from paddlecloud.local.workflow.templates import Template, TemplateError

_FROM_SPEC = (
    "serviceAccountName", "automountServiceAccountToken", "nodeSelector", "affinity", "tolerations", "schedulerName",
    "priorityClassName", "securityContext", "hostAliases", "imagePullSecrets", "hostNetwork", "dnsPolicy", "dnsConfig",
)  # fmt: skip
_FROM_TEMPLATE = (
    "serviceAccountName", "automountServiceAccountToken", "nodeSelector", "affinity", "schedulerName",
    "priorityClassName", "securityContext", "hostAliases",
)  # fmt: skip
_WAIT = "wait"


def pod_for(workflow: Object, spec: Mapping[str, Any], node: Node, template: Template) -> Object:
    meta, given = workflow["metadata"], template.get("metadata") or {}
    pod_meta = spec.get("podMetadata") or {}
    pod_spec: dict[str, Any] = {
        **{field: spec[field] for field in _FROM_SPEC if spec.get(field) is not None},
        **{field: template[field] for field in _FROM_TEMPLATE if template.get(field) is not None},
        "restartPolicy": "Never",
    }
    if spec.get("podPriorityClassName") and not template.get("priorityClassName"):
        pod_spec["priorityClassName"] = spec["podPriorityClassName"]
    name = pod_name(meta["name"], node["name"], template.get("name", ""))
    patches = patches_of(spec, template)
    template = with_commands(template, patches)
    inits, containers = containers_of(template, spec, meta["name"], name, owner_reference(workflow))
    pod_spec["initContainers"], pod_spec["containers"] = inits, containers
    pod_spec["volumes"] = volumes_of(
        (*(spec.get("volumes") or ()), *volumes_for(workflow, spec)), template, (*inits, *containers)
    )
    if tolerations := [*(spec.get("tolerations") or ()), *(template.get("tolerations") or ())]:
        pod_spec["tolerations"] = tolerations
    if seconds := template.get("activeDeadlineSeconds"):
        pod_spec["activeDeadlineSeconds"] = _whole(seconds)
    own = {each["name"] for each in (*inits, *containers)}
    pod_spec = _with_sidecars(patched(pod_spec, patches), own)
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "labels": {
                **(pod_meta.get("labels") or {}),
                **(given.get("labels") or {}),
                WORKFLOW: meta["name"],
                COMPLETED: "false",
            },
            "annotations": {
                **(pod_meta.get("annotations") or {}),
                **(given.get("annotations") or {}),
                NODE_ID: node["id"],
                NODE_NAME: node["name"],
                "kubectl.kubernetes.io/default-container": MAIN,
            },
            "ownerReferences": [owner_reference(workflow)],
        },
        "spec": pod_spec,
    }


def _with_sidecars(pod_spec: Object, own: Set[str]) -> Object:
    """Containers that a patch adds end with the program, as Argo ends them: they are sidecars of Kubernetes. What a
    patch says of the containers that only Argo's pods have does not count."""
    inits = [each for each in pod_spec["initContainers"] if each["name"] in own or each["name"] != INIT]
    added = [each for each in pod_spec["containers"] if each["name"] not in own and each["name"] != _WAIT]
    return {
        **pod_spec,
        "initContainers": [*inits, *({**each, "restartPolicy": "Always"} for each in added)],
        "containers": [each for each in pod_spec["containers"] if each["name"] in own],
    }


def _whole(value: Any) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise TemplateError(f"activeDeadlineSeconds must be a whole number, not {value!r}") from None
