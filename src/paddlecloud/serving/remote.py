"""Pictures and other inputs that requests name by URL, fetched without becoming anybody's way into the network.

Size, time, redirects and the number of fetches at a time are limited, and an address in the cluster or on the machine
is refused: a model server must not be made to read what its clients cannot. `PADDLECLOUD_SERVING_PRIVATE` lists hosts
that are allowed all the same, for example `127.0.0.1,files.internal`. The address that was checked is the one connected
to.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import http.client
import ipaddress
import os
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, urljoin, urlsplit

from paddlecloud.serving.errors import BadInput, Overloaded, TooLarge

ALLOWED = "PADDLECLOUD_SERVING_PRIVATE"
LARGEST = 16 << 20
PATIENCE = 5.0
AT_ONCE = 16
"""Fetches at the same time: half of the threads that prepare inputs, so that slow servers cannot hold all of them."""
_places = threading.BoundedSemaphore(AT_ONCE)
REDIRECTS = 3
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_INSIDE = tuple(map(ipaddress.ip_network, ("::/96", "64:ff9b:1::/48", "fec0::/10")))
"""Ranges of one's own network that older releases of Python call global."""


def fetch(url: str, *, known: Mapping[str, Path] | None = None, largest: int = LARGEST) -> bytes:
    """What is behind `url` (http, https or data); `known` answers for some URLs without asking anybody."""
    if known and url in known:
        return known[url].read_bytes()
    if url.startswith("data:"):
        return _inline(_split(url), largest)
    if not _places.acquire(blocking=False):
        raise Overloaded(f"{AT_ONCE} URLs are being fetched already")
    try:
        return _follow(url, largest)
    finally:
        _places.release()


def _follow(url: str, largest: int) -> bytes:
    deadline = time.monotonic() + PATIENCE
    for _ in range(REDIRECTS + 1):
        place = _split(url)
        if place.scheme == "data":
            return _inline(place, largest)
        if place.scheme not in ("http", "https") or not place.hostname:
            raise BadInput(f"{url[:200]!r} is no http, https or data URL")
        answer = _get(place, deadline, largest)
        if isinstance(answer, bytes):
            return answer
        url = _joined(url, answer)
    raise BadInput(f"{url[:200]!r} is redirected more than {REDIRECTS} times")


def _split(url: str) -> SplitResult:
    try:
        place = urlsplit(url)
        _ = place.port  # read here, where a number that is none is the client's mistake
    except ValueError as error:  # `http://[`, `http://a:x`
        raise BadInput(f"{url[:200]!r} is no URL: {error}") from None
    return place


def _joined(url: str, answer: str) -> str:
    try:
        return urljoin(url, answer)
    except ValueError as error:
        raise BadInput(f"{url[:200]!r} is redirected to {answer[:200]!r}, which is no URL: {error}") from None


def _inline(place: SplitResult, largest: int) -> bytes:
    head, _, content = place.path.partition(",")
    try:
        data = base64.b64decode(content, validate=True) if head.endswith(";base64") else content.encode()
    except binascii.Error as error:
        raise BadInput(f"the data URL is damaged: {error}") from error
    if len(data) > largest:
        raise TooLarge(f"the data URL holds more than {largest} bytes")
    return data


def _get(place: SplitResult, deadline: float, largest: int) -> bytes | str:
    """The content, or where it has moved to."""
    host = place.hostname or ""
    try:
        connection = _connect(place, _checked(host, place.port or (443 if place.scheme == "https" else 80)), deadline)
        # A socket's timeout begins again with every byte: a server that drips would hold a thread for ever.
        watchdog = threading.Timer(max(0.1, deadline - time.monotonic()), _cut, (connection.sock,))
        watchdog.daemon = True
        watchdog.start()
        try:
            target = (place.path or "/") + (f"?{place.query}" if place.query else "")
            connection.request("GET", target, headers={"Host": place.netloc.rpartition("@")[2]})
            answer = connection.getresponse()
            if answer.status in (301, 302, 303, 307, 308) and (moved := answer.headers.get("Location")):
                return moved
            if answer.status != 200:
                raise BadInput(f"{place.geturl()[:200]!r} answers {answer.status} {answer.reason}")
            return _read(answer, deadline, largest)
        finally:
            watchdog.cancel()
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        raise BadInput(f"{place.geturl()[:200]!r} cannot be fetched: {error}") from error


def _read(answer: http.client.HTTPResponse, deadline: float, largest: int) -> bytes:
    content = bytearray()
    while block := answer.read1(1 << 16):
        content += block
        if len(content) > largest:
            raise TooLarge(f"what the URL names is larger than {largest} bytes")
    if time.monotonic() > deadline:
        raise TimeoutError(f"not done after {PATIENCE:g} seconds")
    return bytes(content)


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it has ended meanwhile
        connection.shutdown(socket.SHUT_RDWR)


def _checked(host: str, port: int) -> tuple[str, int]:
    """An address of the host that may be asked."""
    address = str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0])
    if host not in os.environ.get(ALLOWED, "").split(",") and not _public(address):
        raise BadInput(f"{host!r} is an address inside; {ALLOWED} lists the hosts that may be asked all the same")
    return address, port


def _public(address: str) -> bool:
    number = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(number, ipaddress.IPv6Address):
        if any(number in network for network in _INSIDE):
            return False
        number = number.ipv4_mapped or number.sixtofour or _translated(number) or number
    return bool(number.is_global and not number.is_multicast)


def _translated(number: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The address that a NAT64 connects to in its place: where there is only IPv6, hosts with IPv4 have such ones."""
    return ipaddress.IPv4Address(int(number) & 0xFFFFFFFF) if number in _NAT64 else None


def _connect(place: SplitResult, address: tuple[str, int], deadline: float) -> http.client.HTTPConnection:
    left = max(0.1, deadline - time.monotonic())
    raw = socket.create_connection(address, timeout=left)
    connection = http.client.HTTPConnection(place.hostname or "", address[1], timeout=left)
    if place.scheme == "https":
        connection.sock = ssl.create_default_context().wrap_socket(raw, server_hostname=place.hostname)
    else:
        connection.sock = raw
    return connection
