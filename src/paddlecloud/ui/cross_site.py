"""Requests that pages of other sites begin, and redirects that must not lead to other sites."""

from __future__ import annotations

import re

from aiohttp import web
from markupsafe import escape

from paddlecloud.ui.responses import html


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
    return site in ("cross-site", "same-site") or (site is None and origin not in ("null", *_origins(request)))


def _origins(request: web.BaseRequest) -> tuple[str, str]:
    """Of this name: whether browsers reach it over TLS, a proxy knows."""
    return f"http://{request.host}", f"https://{request.host}"
