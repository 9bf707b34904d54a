"""A dashboard over an API server of the test: real rights, real watches, no browser and no port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from paddlecloud.api.argo import GROUP
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import SystemClock
from paddlecloud.kube.config import Config
from paddlecloud.kube.resource import Object, resource_of
from paddlecloud.ui import templates
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.curve_reader import CurveReader
from paddlecloud.ui.feed import Feed
from paddlecloud.ui.frame import Frame
from paddlecloud.ui.pages import PAGES
from paddlecloud.ui.reader import Reader
from paddlecloud.ui.rights import Rights
from paddlecloud.ui.sessions import Identity, ViewerSession
from paddlecloud.ui.verdicts import Examiner
from unit.ui.hostile import NOW


class Viewer:
    """Somebody who looks at pages, with the rights of a client."""

    def __init__(self, feed: Feed, client: Client, name: str = "somebody") -> None:
        self.clock = SystemClock()
        identity = Identity(name, Config("https://127.0.0.1:1"), client)
        self.session = ViewerSession(identity, Rights(client, self.clock), 0.0)
        self._feed = feed
        self._curves = CurveReader(identity, feed, self.clock)

    def asked(self, params: Mapping[str, str], query: Mapping[str, str], language: str = "en") -> Asked:
        examiner = Examiner(self.session.identity, self.clock)
        reader = Reader(self._feed, self.session.rights)
        return Asked(reader, examiner, self._curves, params, query, language, NOW, True)

    async def html(self, path: str, query: Mapping[str, str] | None = None, language: str = "en") -> str:
        page, params = match(path)
        asked = self.asked(params, query or {}, language)
        value = await page.load(asked)
        frame = Frame(language, "", path, self.session, PAGES, page.section)
        return templates.page(page.template, language, {"frame": frame, "page": value, "problems": {}})

    async def parts(self, path: str, language: str = "en") -> dict[str, str]:
        """What an open page is sent."""
        page, params = match(path)
        value = await page.load(self.asked(params, {}, language))
        frame = Frame(language, "", path, self.session, PAGES, page.section)
        return templates.live_parts(page.template, language, {"frame": frame, "page": value, "problems": {}})


def match(path: str) -> tuple[DashboardPage, dict[str, str]]:
    return next((page, params) for page in PAGES if (params := page.match(path)) is not None)


@asynccontextmanager
async def feed_of(client: Client) -> AsyncIterator[Feed]:
    feed = Feed(client, ["default"])
    try:
        yield feed
    finally:
        await feed.close()


async def stored(client: Client, *objects: Object) -> None:
    """With their status, as a controller would write it."""
    for obj in objects:
        resource = resource_of(obj)
        whole = resource.group == GROUP  # Argo's kinds have no subresource
        body: Any = {key: value for key, value in obj.items() if key != "status" or whole}
        body["metadata"] = {
            key: value
            for key, value in obj["metadata"].items()
            if key not in ("uid", "resourceVersion", "creationTimestamp", "ownerReferences")
        }
        made = await client.create(resource, body)
        if obj.get("status") and not whole:
            await client.update(resource, {**made, "status": obj["status"]}, subresource="status")
