"""No request about workflows holds up the API server: judging one, and reading what its steps stored."""

from __future__ import annotations

import base64
import gzip
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddlecloud.api import argo
from paddlecloud.api.crd import definition
from paddlecloud.local.apiserver.auth.authentication import ADMIN
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.workflow.artifacts.repository import Repository
from paddlecloud.local.workflow.controller import Workflows
from unit.budgets.requests import Sent
from unit.budgets.test_requests import LONGEST, Server, longest_callback

BASE = "/apis/argoproj.io/v1alpha1/namespaces/default"
MARK = {"suspend": {}}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    platform = ControlPlane(tmp_path / "data", seed=1)
    await platform.start()
    server = Server(platform)
    for kind in argo.KINDS:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await server.send(Sent("", "POST", path, lambda kind=kind: definition(kind)), user=ADMIN)  # type: ignore[misc]
    Workflows(platform, Repository(tmp_path / "artifacts"), lambda image: None)
    yield server
    await platform.stop()


def made(kind: str, name: str, spec: Any, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec, **fields}


def templates(count: int) -> list[dict[str, Any]]:
    return [{"name": f"t{number}", **MARK} for number in range(count)]


def all_before(count: int) -> dict[str, Any]:
    tasks = [
        {"name": f"a{at}", "template": "t0", "dependencies": [f"a{other}" for other in range(at)]}
        for at in range(count)
    ]
    return {"entrypoint": "d", "templates": [*templates(1), {"name": "d", "dag": {"tasks": tasks}}]}


PATCH = msgspec.json.encode({"x": [{"a": 1}] * 5500}).decode()
SPECS: dict[str, Callable[[], dict[str, Any]]] = {
    "a patch for all templates": lambda: {
        "entrypoint": "t0", "templateDefaults": {"podSpecPatch": PATCH}, "templates": templates(200)
    },
    "patches": lambda: {
        "entrypoint": "t0",
        "templates": [{**each, "podSpecPatch": "x:\n" + "- a: 1\n" * 9000} for each in templates(10)],
    },
    "tasks that depend on all before": lambda: all_before(550),
    "templates": lambda: {"entrypoint": "t0", "templates": templates(30_000)},
}  # fmt: skip


@pytest.mark.parametrize("shape", SPECS)
async def test_judging_a_workflow_holds_up_nobody(server: Server, monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    spec = SPECS[shape]()
    with longest_callback(monkeypatch) as longest:
        await server.send(Sent(shape, "POST", f"{BASE}/workflows", lambda: made("Workflow", "w", spec)), user=ADMIN)
        named = {"workflowTemplateRef": {"name": "t"}}
        template = Sent(shape, "POST", f"{BASE}/workflowtemplates", lambda: made("WorkflowTemplate", "t", spec))
        await server.send(template, user=ADMIN)
        small = Sent("named", "POST", f"{BASE}/workflows", lambda: made("Workflow", "v", named))
        await server.send(small, user=ADMIN)
    assert longest[0] < LONGEST


async def test_defaults_of_very_many_templates_are_refused(server: Server) -> None:
    spec = {"entrypoint": "t0", "templateDefaults": {"podSpecPatch": PATCH}, "templates": templates(2_000)}
    sent = Sent("", "POST", f"{BASE}/workflows", lambda: made("Workflow", "w", spec), 422)
    assert b"with 2,000 templates it is too much" in (await server.send(sent, user=ADMIN)).body


@pytest.mark.parametrize(("query", "status"), [({}, 200), ({"node": "n1", "name": "a1"}, 404)])
async def test_reading_artifacts_of_packed_nodes_holds_up_nobody(
    server: Server, monkeypatch: pytest.MonkeyPatch, query: dict[str, str], status: int
) -> None:
    nodes = {
        f"n{number}": {
            "id": f"n{number}", "name": f"n{number}", "displayName": "n", "type": "Pod", "phase": "Succeeded",
            "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:00Z",
            "outputs": {"artifacts": [{"name": f"a{at}", "s3": {"key": f"k/{at}"}} for at in range(60)]},
        }
        for number in range(1_500)
    }  # fmt: skip
    packed = base64.b64encode(gzip.compress(msgspec.json.encode(nodes))).decode()
    state = {"phase": "Succeeded", "compressedNodes": packed}
    flow = made("Workflow", "w", {"entrypoint": "t0", "templates": templates(1)}, status=state)
    await server.send(Sent("", "POST", f"{BASE}/workflows", lambda: flow), user=ADMIN)
    with longest_callback(monkeypatch) as longest:
        sent = Sent("", "GET", f"{BASE}/workflows/w/artifacts", bytes, status, query=query)
        answer = await server.send(sent, user=ADMIN)
    assert longest[0] < LONGEST
    if status == 200:
        items = msgspec.json.decode(answer.body)["items"]
        assert (len(items), "digest" in items[0], "digest" in items[-1]) == (90_000, True, False)
