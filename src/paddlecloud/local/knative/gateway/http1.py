"""HTTP/1.1 messages, read strictly. Pure: bytes in, heads out.

Whatever two servers could understand differently is refused: that is all a request smuggler needs. Both
Content-Length and Transfer-Encoding, either of them twice, a bare line feed, a space before a colon, a folded line, two
Hosts, a Host that differs from the request's own authority.

Clients and pods are both untrusted, and one process serves all of them: the cost of a head is linear in its length, and
its length is limited. `_HEADERS` checks all lines first; only then `_HEADER` cuts them, so that it cannot fail and
backtrack.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import NamedTuple

MAX_HEAD = 64 * 1024
MAX_TARGET = 16 * 1024
READ = 64 * 1024
"""Bytes taken from one connection before the others have their turn: a flood of tiny chunks holds them up no longer."""
CHUNKED = -1
"""As a length: the body says itself where it ends."""
UNTIL_CLOSE = -2
"""As a length of an answer: it ends with the connection."""
HTTP2_ADVICE = (
    "HTTP/2 and gRPC are routed at status.url of a service with protocol h2c, by Envoy; if it is not installed: "
    "pip install 'paddlecloud[h2c]', then pdc down and pdc up"
)
"""For clients that meet the wrong port or a platform without Envoy."""

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_REQUEST = re.compile(rb"(" + _TOKEN + rb") ([\x21-\x7e]+) HTTP/1\.([01])\r\n")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\x00-\x08\x0a-\x1f\x7f]*)?\r\n")
_HEADERS = re.compile(rb"(?:" + _TOKEN + rb":[^\x00-\x08\x0a-\x1f\x7f]*\r\n)*")
_HEADER = re.compile(rb"(" + _TOKEN + rb"):[ \t]*([^\r\n]*[^\r\n \t])?[ \t]*\r\n")
_HOST = re.compile(rb"([a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_ABSOLUTE = re.compile(rb"https?://([^/?#@]+)([/?].*)?", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,18}")

HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect",
     b"proxy-authenticate", b"proxy-authorization", b"http2-settings")
)  # fmt: skip
"""Headers about one connection, not about the message: they are not passed on."""

EDGE_ONLY = tuple(
    name.replace("-", "[-_]")
    for name in (
        "forwarded", "x-forwarded-.*", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip",
        "x-original-.*", "x-rewrite-url", "x-envoy-.*", "k-.*", "knative-serving-.*",
    )
)  # fmt: skip
"""Regular expressions of the headers that only a proxy in front of the pod may set. Pods believe they come from the
gateway (which address asked, over which protocol, as which user) or from Knative's own probes; those of clients are
dropped. Servers that put headers into variables (CGI, WSGI) take `_` for `-`: X_Real-IP is X-Real-IP there."""
_EDGE_ONLY = re.compile("|".join(EDGE_ONLY).encode())
_EDGE_INITIALS = frozenset(b"fxtk")
"""Their first letters: a header with another one needs no further comparison, which takes a fifth of the time."""

_FRAMING = frozenset((b"host", b"content-length", b"transfer-encoding", b"content-type", b"authorization"))
"""Headers that a `Connection` header must not be able to remove."""

Pairs = list[tuple[bytes, bytes]]


class BadMessage(Exception):
    """Not HTTP/1.1 as it should be. `status` is sent to the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class RequestHead(NamedTuple):
    """`headers` are those to pass on. `length` is that of the body: a number or CHUNKED."""

    method: bytes
    target: bytes
    host: str
    headers: Pairs
    length: int
    keep_alive: bool
    modern: bool
    """Whether the client uses HTTP/1.1."""
    expects: bool
    upgrade: bytes


class ResponseHead(NamedTuple):
    status: int
    first: bytes
    headers: Pairs
    length: int
    keep_alive: bool
    upgrade: bytes


def read_request(head: bytes) -> RequestHead:
    """`head` ends with its last line, the empty one left out. Raises `BadMessage`."""
    line = _REQUEST.match(head)
    if line is None:
        if head.startswith(b"PRI * HTTP/2"):
            raise BadMessage(505, f"this port takes HTTP/1.1 only; {HTTP2_ADVICE}")
        raise BadMessage(400, "the request line is not METHOD TARGET HTTP/1.1")
    method, target, minor = line.groups()
    modern = minor == b"1"
    pairs = _pairs(head, line.end(), 400)
    if len(target) > MAX_TARGET:
        raise BadMessage(414, f"the target has more than {MAX_TARGET} characters")
    host = length = None
    chunked = expects = False
    connection: list[bytes] = []
    upgrade = b""
    dropped: set[bytes] = set()
    for name, value in pairs:
        lower = name.lower()
        if lower == b"host":
            if host is not None:
                raise BadMessage(400, "two Host headers")
            host = value.lower()
        elif lower == b"content-length":
            if length is not None or _LENGTH.fullmatch(value) is None:
                raise BadMessage(400, "Content-Length is not one number")
            length = int(value)
        elif lower in HOP_BY_HOP:
            dropped.add(lower)
            if lower == b"transfer-encoding":
                if chunked or value.lower() != b"chunked" or not modern:
                    raise BadMessage(501 if modern else 400, "Transfer-Encoding is not just chunked")
                chunked = True
            elif lower == b"connection":
                connection.append(value.lower())
            elif lower == b"upgrade":
                upgrade = value
            elif lower == b"expect":
                if value.lower() != b"100-continue":
                    raise BadMessage(417, "Expect is not 100-continue")
                expects = True
        elif lower[0] in _EDGE_INITIALS and _EDGE_ONLY.fullmatch(lower):
            dropped.add(lower)
    if chunked and length is not None:
        raise BadMessage(400, "both Content-Length and Transfer-Encoding")
    if host is None and modern:
        raise BadMessage(400, "no Host header")
    if method in (b"CONNECT", b"TRACE"):
        raise BadMessage(405, f"{method.decode()} is not served")
    host, target = _authority(host or b"", target)
    tokens = _tokens(connection) if connection else frozenset()
    if dropped:
        pairs = _without(dropped | tokens, pairs)
    return RequestHead(
        method=method,
        target=target,
        host=host.decode("ascii"),
        headers=pairs,
        length=CHUNKED if chunked else length or 0,
        keep_alive=b"close" not in tokens if modern else b"keep-alive" in tokens,
        modern=modern,
        expects=expects and modern,
        upgrade=upgrade if b"upgrade" in tokens and modern and not _offers_http2(upgrade) else b"",
    )


def read_response(head: bytes, *, to: bytes) -> ResponseHead:
    """The head of the answer to a request of method `to`."""
    line = _STATUS.match(head)
    if line is None:
        raise BadMessage(502, "the pod did not answer in HTTP/1.1")
    status, modern = int(line[2]), line[1] == b"1"
    pairs = _pairs(head, line.end(), 502)
    length: int | None = None
    chunked = special = False
    connection: list[bytes] = []
    upgrade = b""
    for name, value in pairs:
        lower = name.lower()
        if lower == b"content-length":
            if _LENGTH.fullmatch(value) is None or (length is not None and length != int(value)):
                raise BadMessage(502, "the pod's Content-Length is not one number")
            length = int(value)
        elif lower in HOP_BY_HOP:
            special = True
            if lower == b"transfer-encoding":
                if value.lower() != b"chunked" or chunked:
                    raise BadMessage(502, "the pod's Transfer-Encoding is not just chunked")
                chunked = True
            elif lower == b"connection":
                connection.append(value.lower())
            elif lower == b"upgrade":
                upgrade = value
    if chunked and length is not None:
        raise BadMessage(502, "the pod sent both Content-Length and Transfer-Encoding")
    tokens = _tokens(connection) if connection else frozenset()
    bodiless = to == b"HEAD" or status < 200 or status in (204, 304)
    size = 0 if bodiless else CHUNKED if chunked else UNTIL_CLOSE if length is None else length
    if bodiless and chunked:
        special = True
    return ResponseHead(
        status=status,
        first=b"HTTP/1.1 " + head[9 : line.end()],
        headers=_without(HOP_BY_HOP | tokens, pairs) if special else pairs,
        length=size,
        keep_alive=(b"close" not in tokens if modern else b"keep-alive" in tokens) and size != UNTIL_CLOSE,
        upgrade=upgrade,
    )


def _pairs(head: bytes, begin: int, status: int) -> Pairs:
    block = head[begin:]
    if _HEADERS.fullmatch(block) is None:
        raise BadMessage(status, "a header line is not NAME: VALUE, ended by CR LF")
    return _HEADER.findall(block)


def _authority(host: bytes, target: bytes) -> tuple[bytes, bytes]:
    """The one host that is meant, without its port, and the target without it."""
    if target[:1] != b"/" and target != b"*":
        absolute = _ABSOLUTE.fullmatch(target)
        if absolute is None:
            raise BadMessage(400, "the target is neither a path nor a URL")
        named = absolute[1].lower()
        if host and host != named:
            raise BadMessage(400, "the target names another host than Host does")
        rest = absolute[2] or b"/"
        host, target = named, rest if rest[:1] == b"/" else b"/" + rest
    if not host:
        return b"", target
    match = _HOST.fullmatch(host)
    if match is None:
        raise BadMessage(400, "Host is not the name of a host")
    return match[1].rstrip(b"."), target


def _offers_http2(upgrade: bytes) -> bool:
    """A pod that took the offer would serve requests on the connection that nobody here has looked at."""
    return any(offer.strip().startswith((b"h2", b"http/2")) for offer in upgrade.lower().split(b","))


def _tokens(connection: list[bytes]) -> frozenset[bytes]:
    tokens = frozenset(token.strip() for token in b",".join(connection).split(b","))
    if tokens & _FRAMING:
        raise BadMessage(400, "Connection names a header that belongs to the message")
    return tokens


def _without(dropped: Set[bytes], pairs: Pairs) -> Pairs:
    return [pair for pair in pairs if pair[0].lower() not in dropped]


def render(first: bytes, headers: Pairs, *more: bytes) -> bytes:
    """A head as it is sent; `more` are whole lines without their end."""
    lines = [first]
    lines += [b"%b: %b\r\n" % pair for pair in headers]
    lines += [line + b"\r\n" for line in more]
    lines.append(b"\r\n")
    return b"".join(lines)
