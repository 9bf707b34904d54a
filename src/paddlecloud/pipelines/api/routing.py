"""Which function answers which path: tables of templates, and a sentence for what is not offered. Pure."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.replies import RequestRefused


class Request(NamedTuple):
    query: Mapping[str, str]
    path: Mapping[str, str]
    """The parts of the path that the template names."""
    body: Object
    upload: bytes = b""


Handler = Callable[[Caller, Request], Awaitable[Any]]
Table = Sequence[tuple[str, str, Handler]]
"""Method, template, function; `{id}` matches a part without slashes."""


class Route(NamedTuple):
    method: str
    pattern: re.Pattern[str]
    handler: Handler


def compiled(prefix: str, table: Table) -> list[Route]:
    return [Route(method, _pattern(prefix + template), handler) for method, template, handler in table]


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    text = "".join(f"(?P<{part}>[^/:]+)" if at % 2 else re.escape(part) for at, part in enumerate(parts))
    return re.compile(text)


def match(routes: Sequence[Route], method: str, path: str) -> tuple[Handler, dict[str, str]]:
    """Raises `RequestRefused` with 501 for what this server does not offer."""
    others = set()
    for route in routes:
        found = route.pattern.fullmatch(path)
        if found is None:
            continue
        if route.method == method:
            return route.handler, found.groupdict()
        others.add(route.method)
    if others:
        raise RequestRefused(
            501, f"{method} {path[:200]} is not offered here; this path takes {', '.join(sorted(others))}"
        )
    raise RequestRefused(501, f"{method} {path[:200]} is not offered here; docs/pipelines.md lists what is")
