"""The frame around every page: its language and theme, the navigation, and whose session it is."""

from __future__ import annotations

from typing import Any, NamedTuple

from aiohttp import web

from paddlecloud.ui import words
from paddlecloud.ui.asked import DashboardPage
from paddlecloud.ui.sessions import ViewerSession

LANGUAGE, THEME = "pdc-language", "pdc-theme"
"""Cookies of the two switches."""
THEMES = ("light", "dark")


class Frame(NamedTuple):
    """What the layout needs of a request."""

    language: str
    theme: str
    address: str
    """Path and query of the page."""
    session: ViewerSession | None
    pages: tuple[DashboardPage, ...]
    current: str | None = None
    """The section of the navigation that the page belongs to; that of the overview is empty."""
    namespace: str = ""

    def values(self) -> dict[str, Any]:
        return {"frame": self}

    @property
    def navigation(self) -> list[DashboardPage]:
        return [page for page in self.pages if page.in_navigation]


def language_of(request: web.BaseRequest) -> str:
    chosen = request.cookies.get(LANGUAGE)
    return chosen if chosen in words.LANGUAGES else words.preferred(request.headers.get("Accept-Language", ""))


def theme_of(request: web.BaseRequest) -> str:
    """Empty: as the browser prefers."""
    chosen = request.cookies.get(THEME)
    return chosen if chosen in THEMES else ""
