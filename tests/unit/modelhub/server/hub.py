"""Requests to a hub in tests."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import aiohttp

from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import MODELVERSIONS
from paddlecloud.storage.stores import Store

KEY = b"k" * 32
VERSIONS = "/v1/namespaces/team-a/models/ocr/versions"
FILES = {
    "inference.json": b"{}",
    "inference.pdiparams": b"w" * 300_000,
    "conf/名 称.yaml": b"name: ocr\n",
    "empty": b"",
}


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Hub(NamedTuple):
    url: str
    session: aiohttp.ClientSession
    tokens: dict[str, str]
    store: Store
    client: Client

    async def ask(
        self, method: str, path: str, *, token: str = "", headers: Mapping[str, str] | None = None, **more: Any
    ) -> Answer:
        given = {"Authorization": f"Bearer {token or self.tokens['team-a']}", **(headers or {})}
        if isinstance(more.get("data"), bytes):
            more["data"] = io.BytesIO(more["data"])
        async with self.session.request(method, self.url + path, headers=given, **more) as answer:
            return Answer(answer.status, await answer.read(), answer.headers)

    async def put(self, content: bytes, team: str = "team-a", **more: Any) -> Answer:
        path = f"/v1/namespaces/{team}/blobs/{sha256(content)}"
        return await self.ask("PUT", path, token=self.tokens[team], data=content, **more)

    async def post(self, files: Mapping[str, bytes], team: str = "team-a", **more: Any) -> Answer:
        body = {"files": [described(name, content) for name, content in files.items()], **more}
        path = f"/v1/namespaces/{team}/models/ocr/versions"
        answer = await self.ask("POST", path, token=self.tokens[team], json=body)
        if answer.status == 201:
            await self.register(answer.json)
        return answer

    async def register(self, made: Mapping[str, Any]) -> None:
        """As a client does that has pushed a version."""
        spec = {name: made[name] for name in ("model", "version", "digest", "size")}
        body = {
            "apiVersion": MODELVERSIONS.api_version,
            "kind": MODELVERSIONS.kind,
            "metadata": {"name": f"{made['model']}.{made['version']}"},
            "spec": {**spec, "files": len(made["files"])},
        }
        await self.client.create(MODELVERSIONS, body, namespace=made["namespace"])

    async def push(self, files: Mapping[str, bytes], team: str = "team-a", **more: Any) -> Answer:
        for content in files.values():
            assert (await self.put(content, team)).status in (200, 201)
        return await self.post(files, team, **more)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def described(name: str, content: bytes) -> dict[str, Any]:
    return {"path": name, "sha256": sha256(content), "size": len(content)}
