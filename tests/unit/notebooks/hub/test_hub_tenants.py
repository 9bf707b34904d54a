"""Profiles are listed once for all servers that are looked at in the same seconds."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from paddlecloud.kube.client import Client
from paddlecloud.kube.transport import Response
from paddlecloud.notebooks.hub.tenants import KEPT_SECONDS, Tenants
from paddlecloud.notebooks.membership import Membership

PROFILE = {
    "metadata": {"name": "vision"},
    "spec": {"owner": {"kind": "User", "name": "ada"}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


class OneList:
    """An API server with one Profile, which counts how often it is asked."""

    asked = 0

    async def request(self, method: str, path: str, **_: Any) -> Response:
        assert (method, path) == ("GET", "/apis/kubeflow.org/v1/profiles")
        self.asked += 1
        body = {"metadata": {"resourceVersion": "1"}, "items": [PROFILE]}
        return Response(200, json.dumps(body).encode(), {})


async def test_many_questions_in_the_same_seconds_cost_one_list() -> None:
    server, now = OneList(), 1000.0
    tenants = Tenants(Client(server), now=lambda: now)  # type: ignore[arg-type]
    found = await asyncio.gather(*(tenants.of("ada", ()) for _ in range(50)))
    assert found == [[Membership("vision", "edit")]] * 50
    assert server.asked == 1
    now += KEPT_SECONDS
    assert await tenants.of("bob", ()) == []
    assert server.asked == 2
