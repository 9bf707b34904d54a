"""A request as the API server sees it, whoever carried it: parsed path, verb, options, body.

The aiohttp edge and the in-process transport both build a `Request`; nothing behind them knows HTTP. `RequestInfo` is
what authorisation, audit and the verbs agree on: it is computed once, from method, path and query alone.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote

from paddlecloud.kube import errors

from .authentication import Headers, User

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_TRUE = frozenset(("1", "true", "True", "TRUE", "t", "T"))
_FALSE = frozenset(("", "0", "false", "False", "FALSE", "f", "F"))
_SEGMENT = re.compile(r"[^/%\x00-\x1f\x7f]+")
_ORDINARY = re.compile(r"(/(?!\.)[^/%\x00-\x1f\x7f]+)+")
"""Paths as nearly all are: nothing escaped, no dot at the start of a segment."""

Upgrade = Callable[[Any], Awaitable[Any]]
"""Takes over the connection of the HTTP edge (WebSocket, SPDY); called by that edge with its own request."""


@dataclass(slots=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Headers
    body: bytes
    user: User
    query_list: Mapping[str, list[str]] = field(default_factory=dict)  # for options that repeat (exec's command)

    def header(self, name: str) -> str:
        """The first header of a name given in lower case, empty if there is none."""
        return self.headers.get(name) or ""

    def flag(self, name: str) -> bool:
        """A boolean query option. Kubernetes reads anything but an explicit no as yes; garbage is refused here."""
        if name not in self.query:
            return False
        value = self.query[name]
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
        raise errors.BadRequest(f'query parameter {name}: expected true or false, got "{value}"')

    def number(self, name: str) -> int | None:
        value = self.query.get(name)
        if value is None or value == "":
            return None
        try:
            number = int(value)
        except ValueError:
            raise errors.BadRequest(f'query parameter {name}: expected a whole number, got "{value}"') from None
        if number < 0:
            raise errors.BadRequest(f"query parameter {name}: must not be negative")
        return number


@dataclass(slots=True)
class Answer:
    """What goes back. `stream` replaces `body` for watches and logs; `upgrade` takes over the connection."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None
    upgrade: Upgrade | None = None


class RequestInfo(NamedTuple):
    verb: str
    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse(method: str, raw_path: str, query: Mapping[str, str]) -> RequestInfo:
    """Path and method to verb and resource, by the rules of Kubernetes. Paths that try tricks are refused."""
    verb = _VERBS.get(method)
    if verb is None:
        raise errors.MethodNotAllowed(f"method {method} is not supported")
    parts = _segments(raw_path)
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return RequestInfo(verb, "/" + "/".join(parts))
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (group == "" and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    elif rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
    if len(rest) > 3:
        raise errors.NotFound("the server could not find the requested resource")
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if not name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
        if verb == "list" and query.get("watch", "") in _TRUE:
            verb = "watch"
    return RequestInfo(verb, "/" + "/".join(parts), True, group, version, rest[0], namespace, name, subresource)


def _segments(raw_path: str) -> list[str]:
    if _ORDINARY.fullmatch(raw_path):
        return raw_path[1:].split("/")
    parts = []
    for raw in raw_path.strip("/").split("/") if raw_path.strip("/") else ():
        part = unquote(raw)
        if part in (".", "..") or not _SEGMENT.fullmatch(part):
            raise errors.BadRequest("the path has an empty, dotted or control-character segment")
        parts.append(part)
    return parts
