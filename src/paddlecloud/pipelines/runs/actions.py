"""What users do to a run: stop it, resume it, retry it from the steps that failed.

Coroutines that await nothing but the client, so that `pdc` runs them without an event loop.
"""

from __future__ import annotations

from paddlecloud.api.argo_nodes import COMPRESSED, is_packed, packed
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs import retry as retrying
from paddlecloud.pipelines.runs import states
from paddlecloud.pipelines.runs.nodes import nodes_of

STOP = {"spec": {"shutdown": "Stop"}}
"""Argo: running steps get SIGTERM, nothing new begins, exit handlers run."""

_RESUMED = {"phase": "Succeeded", "message": "Resumed by user"}


class NotPossible(Exception):
    """The run is in a state in which this cannot be done; the text says so."""


async def stop(client: Client, workflow: Object) -> None:
    if states.is_over(workflow):
        raise NotPossible(f"the run has ended ({states.phase_of(workflow)}); there is nothing to stop")
    await _patch(client, workflow, STOP)


async def resume(client: Client, workflow: Object) -> None:
    await _patch(client, workflow, resumption(workflow))


def resumption(workflow: Object) -> Object:
    """The patch that resumes a workflow that was suspended as a whole, and suspended steps in it, as `argo resume`
    does. Raises `NotPossible`, and `Invalid` for compressed nodes that cannot be read."""
    if states.is_over(workflow):
        raise NotPossible(
            f"the run has ended ({states.phase_of(workflow)}); pdc pipeline retry begins what failed again"
        )
    nodes = nodes_of(workflow)
    waiting = [key for key, node in nodes.items() if node.get("type") == "Suspend" and node.get("phase") == "Running"]
    if not waiting and not (workflow.get("spec") or {}).get("suspend"):
        raise NotPossible("the run does not wait for anybody: neither it nor a step of it is suspended")
    change: Object = {"spec": {"suspend": None}}
    if waiting and is_packed(workflow):
        # Compressed nodes are written as a whole: what the controller wrote meanwhile must not be lost.
        change["metadata"] = {"resourceVersion": workflow["metadata"]["resourceVersion"]}
        resumed = {key: {**nodes[key], **_RESUMED} for key in waiting}
        change["status"] = {COMPRESSED: packed({"nodes": nodes | resumed})[COMPRESSED]}
    elif waiting:
        change["status"] = {"nodes": dict.fromkeys(waiting, _RESUMED)}
    return change


async def retry(client: Client, workflow: Object) -> None:
    """Begin again at the steps that failed. Their pods go first: a pod's name follows from its step."""
    if not states.is_over(workflow):
        raise NotPossible("the run has not ended; only a run that failed can be retried")
    if states.phase_of(workflow) == "Succeeded":
        raise NotPossible("the run succeeded; there is nothing to retry")
    again, nodes = retrying.retried(workflow)
    namespace, name = workflow["metadata"]["namespace"], workflow["metadata"]["name"]
    pods = await client.list(PODS, namespace, label_selector=f"{names.WORKFLOW}={name}")
    for pod in pods.items:
        meta = pod["metadata"]
        if (meta.get("annotations") or {}).get(names.NODE_ID) in nodes:
            try:
                await client.delete(PODS, meta["name"], namespace=namespace, uid=meta["uid"])
            except NotFound:
                continue  # it went by itself
    await client.update(names.WORKFLOWS, again)


async def _patch(client: Client, workflow: Object, change: Object) -> None:
    meta = workflow["metadata"]
    await client.patch(names.WORKFLOWS, meta["name"], change, namespace=meta["namespace"])
