"""The hub's server on a store of each kind, in front of a real API server with two tenants."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from paddlecloud.api import crd
from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config
from paddlecloud.kube.resource import NAMESPACES, SERVICEACCOUNTS, Object
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.modelhub.server.server import HubServer
from paddlecloud.storage.stores import Store
from unit.modelhub.server.hub import KEY, Hub

GROUP = "modelhub.paddlepaddle.org"
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    running = ControlPlane(tmp_path / "data", seed=1)
    await running.start(objects=[*crd.generate(), *tenants()])
    yield running
    await running.stop()


def tenants() -> list[Object]:
    made: list[Object] = []
    for team in ("team-a", "team-b"):
        meta = {"name": "member", "namespace": team}
        rules = [{"apiGroups": [GROUP], "resources": ["models", "modelversions"], "verbs": ["*"]}]
        subjects = [{"kind": "ServiceAccount", "name": "member", "namespace": team}]
        role = {"apiGroup": RBAC, "kind": "Role", "name": "member"}
        made += [
            {"apiVersion": "v1", "kind": NAMESPACES.kind, "metadata": {"name": team}},
            {"apiVersion": "v1", "kind": SERVICEACCOUNTS.kind, "metadata": dict(meta)},
            {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": dict(meta), "rules": rules},
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "RoleBinding",
                "metadata": dict(meta),
                "roleRef": role,
                "subjects": subjects,
            },
        ]
    return made


async def token_of(client: Client, team: str) -> str:
    answer = await client.raw(
        "POST",
        f"/api/v1/namespaces/{team}/serviceaccounts/member/token",
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )
    return str(json.loads(answer.body)["status"]["token"])


@pytest.fixture
async def hub(platform: ControlPlane, store: Store) -> AsyncIterator[Hub]:
    async def key() -> bytes:
        return KEY

    server = HubServer(store, Config(platform.url, ca=platform.certs.ca_cert.read_bytes()), key)
    port = await server.start("127.0.0.1", 0)
    client = platform.client()
    tokens = {team: await token_of(client, team) for team in ("team-a", "team-b")}
    async with aiohttp.ClientSession() as session:
        yield Hub(f"http://127.0.0.1:{port}", session, tokens, store, client)
    await client.close()
    await server.stop()
