"""Requests to a platform over its real HTTPS edge, as bare as a test wants them."""

from __future__ import annotations

import io
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from paddlecloud.local.control_plane import ControlPlane


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Raw:
    """`token=None` sends no credentials; the administrator's are the default."""

    def __init__(self, session: aiohttp.ClientSession, platform: ControlPlane) -> None:
        self.session = session
        self.url = platform.url
        self.admin = (platform.data / "pki" / "admin.token").read_text().strip()

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = "admin",
        headers: Sequence[tuple[str, str]] = (),
        content_type: str = "application/json",
    ) -> Reply:
        sent = [*headers]
        if token is not None:
            sent.append(("Authorization", f"Bearer {self.admin if token == 'admin' else token}"))
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if data is not None:
            sent.append(("Content-Type", content_type))
        content = io.BytesIO(data) if data is not None and len(data) > 1 << 20 else data  # as aiohttp wants it
        async with self.session.request(method, self.url + path, data=content, headers=sent) as response:
            return Reply(response.status, dict(response.headers), await response.read())

    async def as_user(self, user: str, *groups: str, method: str, path: str, body: Any = None) -> Reply:
        named = [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]
        return await self(method, path, body, headers=named)


@asynccontextmanager
async def raw_client(platform: ControlPlane) -> AsyncIterator[Raw]:
    tls = ssl.create_default_context(cafile=str(platform.certs.ca_cert))
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    async with aiohttp.ClientSession(connector=connector, skip_auto_headers=["Content-Type"]) as session:
        yield Raw(session, platform)
