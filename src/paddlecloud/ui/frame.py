"""Answers of the dashboard: the frame around every page, the headers of every answer, and pages of refusals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from aiohttp import web
from markupsafe import escape

from paddlecloud.kube.errors import ApiError, Unreachable
from paddlecloud.ui import templates, words
from paddlecloud.ui.asked import DashboardPage, Missing
from paddlecloud.ui.sessions import ViewerSession

LANGUAGE, THEME = "pdc-language", "pdc-theme"
"""Cookies of the two switches."""
THEMES = ("light", "dark")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


class Refused(Exception):
    """Becomes a page: a status, and the key of the words that say why."""

    def __init__(self, status: int, key: str, *, detail: str = "") -> None:
        super().__init__(key)
        self.status, self.key, self.detail = status, key, detail


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


def html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8")


def rendered(template: str, frame: Frame, values: Mapping[str, Any], status: int = 200) -> web.Response:
    return html(templates.page(template, frame.language, {**frame.values(), **values}), status)


def is_foreseen(error: Exception) -> bool:
    """Whether a page says all there is to say of it; else the log has more."""
    return isinstance(error, (Refused, Missing, ApiError))


def problem(frame: Frame, error: Exception) -> web.Response:
    """The page of a failure that was foreseen, or of one that was not: the log has that one."""
    if isinstance(error, Refused):
        status, key, detail = error.status, error.key, error.detail
    elif isinstance(error, Missing):
        status, key, detail = 404, "problem.not-found", ""
    elif isinstance(error, Unreachable):
        status, key, detail = 503, "problem.unreachable", error.message
    elif isinstance(error, ApiError):
        status, key, detail = error.code if 400 <= error.code < 600 else 502, "problem.refused", error.message
    else:
        status, key, detail = 500, "problem.failed", ""
    return rendered("problem.html", frame, {"key": key, "detail": detail}, status)


def see_other(address: str) -> web.Response:
    """To an address of this site."""
    return web.Response(status=303, headers={"Location": address})


def hop(address: str) -> web.Response:
    """To an address of this site by a page of this site: with a redirect, a browser that came by a link of another site
    would not send the cookie, which is SameSite=Strict."""
    return html(f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(local(address))}">')


_LOCAL = re.compile(r"/([!-.0-\[\]-~][!-~]*)?")
"""Printable characters alone: browsers leave tabs and line breaks out, and `/`, tab, `/host` is `//host`."""


def local(address: str) -> str:
    """The address, if it is a path of this site: `//host` and `/\\host` are others."""
    return address if _LOCAL.fullmatch(address) else "/"


def is_of_another_site(request: web.BaseRequest) -> bool:
    """Whether a page of another site began it, also one of another port of this name. Our own pages send no referrer,
    so browsers give their origin as `null`; old ones, which do not say what began a request, at least give that."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin", "null")
    return site in ("cross-site", "same-site") or (site is None and origin not in ("null", f"http://{request.host}"))
