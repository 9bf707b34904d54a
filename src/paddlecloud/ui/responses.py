"""What the dashboard sends: its headers, pages, and pages that say why a request was refused or failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from paddlecloud.kube.errors import ApiError, Unreachable
from paddlecloud.ui import templates
from paddlecloud.ui.asked import Missing
from paddlecloud.ui.frame import Frame

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


def html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8")


def rendered(template: str, frame: Frame, values: Mapping[str, Any], status: int = 200) -> web.Response:
    return html(templates.page(template, frame.language, {**frame.values(), **values}), status)


def is_expected(error: Exception) -> bool:
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
