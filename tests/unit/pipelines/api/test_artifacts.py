"""Reading an artifact of a step: from a platform that serves artifacts, and from a cluster, which does not."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError, MethodNotAllowed, NotFound
from paddlecloud.kube.transport import JSON, Response
from paddlecloud.pipelines.api.artifacts import read_artifact
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.replies import RequestRefused
from paddlecloud.pipelines.api.routing import Request
from unit.kube.test_kube_client import Wire

ID = "6f1c3d2e-0000-4000-8000-000000000000"
WORKFLOW = {
    "metadata": {"name": "w", "namespace": "kubeflow"},
    "status": {
        "nodes": {"n": {"outputs": {"artifacts": [{"name": "made"}, {"name": "raw", "raw": {"data": "text"}}]}}}
    },
}


class Platform(Wire):
    """Answers the search for the run, then the question which artifacts are served."""

    def __init__(self, content: bytes | ApiError, serves: ApiError | None = None) -> None:
        listed = {"items": []} if serves is None else Response(serves.code, json.dumps(serves.status()).encode())
        super().__init__({"items": [WORKFLOW]}, listed)
        self._content = content

    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON
    ) -> AsyncIterator[bytes]:
        if isinstance(self._content, ApiError):
            raise self._content
        yield self._content


async def read(wire: Wire, artifact: str = "made", node: str = "n") -> Any:
    caller = Caller(Client(wire), "kubeflow", str, str)
    found = await read_artifact(caller, Request({}, {"id": ID, "node": node, "artifact": artifact}, {}))
    return base64.b64decode(found["data"])


async def test_the_content_is_read_from_the_platform_or_from_the_workflow() -> None:
    assert await read(Platform(b"hello")) == b"hello"
    assert await read(Platform(b""), "raw") == b"text"


@pytest.mark.parametrize(
    ("wire", "where", "status", "sentence"),
    [
        (Platform(NotFound("is no longer stored")), {}, 404, "is no longer stored"),
        (Platform(NotFound("no such path"), NotFound("no such path")), {}, 501, "read it from the artifact store"),
        (Platform(MethodNotAllowed("no"), MethodNotAllowed("no")), {}, 501, "read it from the artifact store"),
        (Platform(b""), {"artifact": "other"}, 404, "has no artifact 'other'"),
        (Platform(b""), {"node": "other"}, 404, "has no node 'other'"),
    ],
    ids=["deleted", "a cluster", "a cluster that refuses", "no such artifact", "no such node"],
)
async def test_each_reason_why_nothing_can_be_read_has_its_own_status(
    wire: Wire, where: dict[str, str], status: int, sentence: str
) -> None:
    with pytest.raises(RequestRefused, match=sentence) as refused:
        await read(wire, **where)
    assert refused.value.status == status
