"""An API server with two tenants, and viewers of a dashboard over it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from paddlecloud.api import crd
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.auth.authentication import service_account
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.platform import dashboard
from paddlecloud.platform.chart import user_roles
from paddlecloud.ui.feed import Feed
from unit.ui.world import Viewer, feed_of

RBAC = "rbac.authorization.k8s.io"
TEAMS = ("team-a", "team-b")


def tenants() -> list[Object]:
    made: list[Object] = []
    for team in TEAMS:
        meta = {"name": "member", "namespace": team}
        subjects = [{"kind": "ServiceAccount", **meta}]
        role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"}
        made += [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "RoleBinding",
                "metadata": meta,
                "roleRef": role,
                "subjects": subjects,
            },
        ]
    return made


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    running = ControlPlane(tmp_path / "data", seed=1)
    await running.start(objects=[*crd.generate(), *user_roles(), *dashboard.objects(), *tenants()])
    yield running
    await running.stop()


@pytest.fixture
async def admin(platform: ControlPlane) -> Client:
    return platform.client()


@pytest.fixture
async def feed(platform: ControlPlane) -> AsyncIterator[Feed]:
    """With the rights that the dashboard has on the embedded platform."""
    account = service_account("kube-system", dashboard.NAME)
    async with feed_of(platform.client(account, user_agent="dashboard")) as made:
        yield made


@pytest.fixture
async def viewer(feed: Feed, admin: Client) -> Viewer:
    """Who may see everything."""
    return Viewer(feed, admin, "admin")


@pytest.fixture
async def member(feed: Feed, platform: ControlPlane) -> Viewer:
    """Of team-a."""
    return Viewer(feed, platform.client(service_account("team-a", "member")), "member")
