"""The content of an output artifact of a step, through the API.

The embedded platform has it below the workflow (`workflows/artifacts`). A cluster has no such path: there it is read
from the artifact store, with the store's own keys, which this server does not have.
"""

from __future__ import annotations

import asyncio
import base64

from paddlecloud.kube.errors import MethodNotAllowed, NotFound
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.api import runs
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.replies import RequestRefused
from paddlecloud.pipelines.api.routing import Request
from paddlecloud.pipelines.runs.nodes import nodes_of

MAX_BYTES = 16 << 20
"""Of an artifact that is answered as JSON."""


async def read_artifact(caller: Caller, request: Request) -> Object:
    workflow = await runs.find(caller, request.path["id"])
    wanted, node_id = request.path["artifact"], request.path["node"]
    node = (await asyncio.to_thread(nodes_of, workflow)).get(node_id)
    if node is None:
        raise RequestRefused(404, f"the run has no node {node_id[:100]!r}")
    for artifact in (node.get("outputs") or {}).get("artifacts") or ():
        if artifact.get("name") != wanted:
            continue
        if isinstance(artifact.get("raw"), dict):
            return {"data": base64.b64encode(str(artifact["raw"].get("data") or "").encode()).decode()}
        return {"data": base64.b64encode(await _stored(caller, workflow, node_id, wanted)).decode()}
    raise RequestRefused(404, f"node {node_id[:100]!r} has no artifact {wanted[:100]!r}")


async def _stored(caller: Caller, workflow: Object, node: str, name: str) -> bytes:
    meta = workflow["metadata"]
    path = names.WORKFLOWS.path(meta["namespace"], meta["name"], "artifacts")
    found = bytearray()
    try:
        async for chunk in caller.client.stream(path, query={"node": node, "name": name}):
            found += chunk
            if len(found) > MAX_BYTES:
                raise RequestRefused(
                    413, f"artifact {name!r} has more than {MAX_BYTES} bytes; read it from the artifact store"
                )
    except (NotFound, MethodNotAllowed) as error:
        if await _serves_artifacts(caller, path):
            raise RequestRefused(404, error.message) from error
        raise RequestRefused(501, f"artifact {name!r} is not served here; read it from the artifact store") from error
    return bytes(found)


async def _serves_artifacts(caller: Caller, path: str) -> bool:
    """Whether the API server has the list of the run's artifacts: then what it does not have was deleted."""
    try:
        await caller.client.raw("GET", path)
    except (NotFound, MethodNotAllowed):
        return False
    return True
