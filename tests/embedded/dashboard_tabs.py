"""Tabs of a browser that show the dashboard of a platform."""

from __future__ import annotations

from urllib.parse import urlsplit

from harness import Target, pdc
from tools.browser_page import Tab


def address(server: Target) -> str:
    """That signs in, once."""
    return pdc("dashboard", env=server.env).stdout.strip()


def run(server: Target, namespace: str, name: str, *words: str) -> None:
    pdc("run", "--name", name, "-n", namespace, "-d", *words, env=server.env)


async def go(tab: Tab, path: str) -> None:
    parts = urlsplit(str(await tab.js("location.href")))
    await tab.open(f"{parts.scheme}://{parts.netloc}{path}")
