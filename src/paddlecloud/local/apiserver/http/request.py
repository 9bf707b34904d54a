"""A request as the API server sees it, over any transport: parsed path, verb, options, body.

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
from paddlecloud.kube.field_selectors import FieldSelector
from paddlecloud.kube.selectors import LabelSelector
from paddlecloud.local.apiserver.auth.authentication import Headers, User

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_VERBS_IN_PATHS = ("watch", "proxy")
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_TRUE = frozenset(("1", "true", "True", "TRUE", "t", "T"))
_FALSE = frozenset(("", "0", "false", "False", "FALSE", "f", "F"))
_SEGMENT = re.compile(r"[^/%\x00-\x1f\x7f]+")
_INTEGER = re.compile(r"[-+]?[0-9]*", re.ASCII)
_NUMBERS = ("limit", "timeoutSeconds")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
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
    raw_query: str = ""
    """The query as it was sent."""
    impersonator: User | None = None
    """Who sent the request, where `user` is somebody else whom they may and do impersonate."""

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


class _Referable:
    """What counts answers sees when one is gone (`objects/long_lists.py`)."""

    __slots__ = ("__weakref__",)


@dataclass(slots=True)
class Response(_Referable):
    """What goes back. `stream` replaces `body` for watches and logs; `upgrade` takes over the connection."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    """May hold a name more than once."""
    stream: AsyncIterator[bytes] | None = None
    upgrade: Upgrade | None = None


class RequestInfo(NamedTuple):
    """Computed as kube-apiserver does (apiserver/pkg/endpoints/request/requestinfo.go), so that rules mean the same."""

    verb: str
    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    routable: bool = True
    """False for paths that are authorised like any other and then lead nowhere."""
    proxied: str = ""
    """Of a proxy subresource: the path for what is behind it, as it was sent."""


def parse(method: str, raw_path: str, query: Mapping[str, str]) -> RequestInfo:
    """Path and method to verb and resource, by the rules of Kubernetes.

    Nothing is refused here for what it asks: a path or method that leads nowhere is authorised first, like any other.
    """
    path, parts, routable = _split(raw_path)
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return RequestInfo(method.lower(), path, routable=routable)
    verb = _VERBS.get(method, "")
    if rest[0] in _VERBS_IN_PATHS:
        # /watch/… is the form of watches before ?watch=true; /proxy/… leads nowhere since Kubernetes 1.10.
        verb, rest = rest[0], rest[1:]
        routable = routable and verb == "watch"
        if not rest:
            raise no_route()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
            # No namespace is inside another: /namespaces/A/namespaces/B is judged by the rules of A and is not B.
            routable = routable and (group, rest[0]) != ("", "namespaces")
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 and verb != "proxy" else ""
    proxied = ""
    if subresource == "proxy" and verb != "watch":
        behind = _behind(raw_path, parts[: len(parts) - len(rest) + 3])
        routable, proxied = behind is not None, behind or ""
    else:
        routable = routable and len(rest) <= 3 and not (verb == "watch" and subresource)
    if not name and verb == "get":
        verb = "watch" if query.get("watch", "false").lower() not in ("false", "0") else "list"
        name = _selected_name(query)
    elif not name and verb == "delete":
        verb = "deletecollection"
    return RequestInfo(verb, path, True, group, version, rest[0], namespace, name, subresource, routable, proxied)


def _selected_name(query: Mapping[str, str]) -> str:
    """The one name a list or watch selects: a rule with resourceNames may grant it. Only if all options can be read."""
    selector = query.get("fieldSelector", "")
    if "metadata.name" not in selector or not all(_INTEGER.fullmatch(query.get(each, "0")) for each in _NUMBERS):
        return ""
    try:
        LabelSelector.parse(query.get("labelSelector", ""))
        name = FieldSelector.parse(selector).exact("metadata.name") or ""
    except errors.BadRequest:
        return ""  # refused as a selector, once it is clear that the user may list at all
    return name if name not in (".", "..") and _SEGMENT.fullmatch(name) else ""


def _split(raw_path: str) -> tuple[str, list[str], bool]:
    """The path as rules see it, its segments, and whether any route could match them."""
    if _ORDINARY.fullmatch(raw_path):
        return raw_path, raw_path[1:].split("/"), True
    if _BAD_ESCAPE.search(raw_path):
        raise errors.BadRequest("the path has a percent sign that escapes nothing")
    path = unquote(raw_path)
    trimmed = path.strip("/")
    parts = trimmed.split("/") if trimmed else []
    tidy = path.rstrip("/") in (f"/{trimmed}", "")  # slashes at the end are harmless
    return path, parts, tidy and all(part not in (".", "..") and _SEGMENT.fullmatch(part) for part in parts)


def _behind(raw_path: str, parts: list[str]) -> str | None:
    """What follows the first parts of a path, as it was sent: what empty segments and escapes mean there, the pod says.

    None where no route matches: the first parts must stand in the path as they are judged by, and no dots lead out.
    """
    _, *segments = raw_path.split("/")
    first, rest = segments[: len(parts)], segments[len(parts) :]
    if [unquote(segment) for segment in first] != parts or not all(map(_SEGMENT.fullmatch, parts)):
        return None
    if any(unquote(segment) in (".", "..") for segment in (*first, *rest)):
        return None
    return "".join(f"/{segment}" for segment in rest)


def no_route() -> errors.NotFound:
    """For a path that leads nowhere, in kube-apiserver's words."""
    return errors.NotFound("the server could not find the requested resource")
