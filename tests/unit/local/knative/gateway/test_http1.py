"""What the gateway takes for HTTP/1.1, and what it refuses because two servers could read it differently."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.local.knative.gateway.bodies import Chunked, Counted, chunk
from paddlecloud.local.knative.gateway.http1 import (
    CHUNKED,
    UNTIL_CLOSE,
    BadMessage,
    read_request,
    read_response,
    render,
)


def request(*lines: str, first: str = "GET /x HTTP/1.1", host: str | None = "a.b") -> bytes:
    every = [first, *([f"Host: {host}"] if host is not None else []), *lines]
    return "".join(f"{line}\r\n" for line in every).encode("latin-1")


REFUSED = {
    "both framings": (400, request("Content-Length: 5", "Transfer-Encoding: chunked")),
    "two lengths": (400, request("Content-Length: 5", "Content-Length: 6")),
    "the same length twice": (400, request("Content-Length: 5", "Content-Length: 5")),
    "a list of lengths": (400, request("Content-Length: 5, 5")),
    "a signed length": (400, request("Content-Length: +5")),
    "a length in hex": (400, request("Content-Length: 0x5")),
    "an empty length": (400, request("Content-Length:")),
    "another encoding": (501, request("Transfer-Encoding: gzip, chunked")),
    "chunked twice": (501, request("Transfer-Encoding: chunked", "Transfer-Encoding: chunked")),
    "an unknown encoding": (501, request("Transfer-Encoding: xchunked")),
    "chunked in HTTP/1.0": (400, request("Transfer-Encoding: chunked", first="POST / HTTP/1.0")),
    "a space before the colon": (400, request("Content-Length : 5")),
    "a folded line": (400, request("X: 1", " 2")),
    "a line without a colon": (400, request("nonsense")),
    "an empty name": (400, request(": value")),
    "a bare line feed": (400, b"GET / HTTP/1.1\r\nHost: a\nX: 1\r\n"),
    "a bare carriage return": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: 1\rY: 2\r\n"),
    "a NUL in a value": (400, request("X: a\0b")),
    "no host": (400, request(host=None)),
    "two hosts": (400, request("Host: other")),
    "a host with a path": (400, request(host="a.b/c")),
    "a host with a user": (400, request(host="user@a.b")),
    "another host in the target": (400, request(first="GET http://evil/ HTTP/1.1")),
    "a target that is no path": (400, request(first="GET x HTTP/1.1")),
    "a space in the target": (400, request(first="GET /a b HTTP/1.1")),
    "a tab in the request line": (400, request(first="GET\t/ HTTP/1.1")),
    "another version": (400, request(first="GET / HTTP/2.0")),
    "HTTP/2 by prior knowledge": (505, b"PRI * HTTP/2.0\r\n"),
    "CONNECT": (405, request(first="CONNECT /x HTTP/1.1")),
    "a hop that takes the length away": (400, request("Content-Length: 5", "Connection: close, content-length")),
    "a hop that takes the host away": (400, request("Connection: Host")),
    "an expectation nobody knows": (417, request("Expect: wonders")),
    "a very long target": (414, request(first=f"GET /{'x' * 20_000} HTTP/1.1")),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_be_read_in_two_ways_is_refused(name: str) -> None:
    status, head = REFUSED[name]
    with pytest.raises(BadMessage) as refusal:
        read_request(head)
    assert refusal.value.status == status


def test_a_request_keeps_its_headers_but_those_of_the_connection() -> None:
    head = read_request(
        request("Accept: */*", "Connection: keep-alive, X-Own", "X-Own: 1", "TE: trailers", "Cookie: a=b", host="A.b:8")
    )
    assert head.host == "a.b"
    assert head.headers == [(b"Host", b"A.b:8"), (b"Accept", b"*/*"), (b"Cookie", b"a=b")]
    assert (head.length, head.keep_alive, head.modern) == (0, True, True)


@pytest.mark.parametrize(
    ("lines", "first", "keep"),
    [
        ((), "GET / HTTP/1.1", True),
        (("Connection: close",), "GET / HTTP/1.1", False),
        ((), "GET / HTTP/1.0", False),
        (("Connection: Keep-Alive",), "GET / HTTP/1.0", True),
    ],
)
def test_connections_are_kept_as_the_version_says(lines: tuple[str, ...], first: str, keep: bool) -> None:
    assert read_request(request(*lines, first=first)).keep_alive is keep


def test_a_target_with_its_own_host_becomes_a_path() -> None:
    head = read_request(request(first="GET http://a.b/p?q=1 HTTP/1.1"))
    assert (head.host, head.target) == ("a.b", b"/p?q=1")


def test_an_upgrade_is_kept_unless_it_is_to_another_http() -> None:
    assert read_request(request("Connection: Upgrade", "Upgrade: websocket")).upgrade == b"websocket"
    assert read_request(request("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c")).upgrade == b""
    for offers in ("websocket, h2c", "H2C,websocket", "HTTP/2.0"):
        assert read_request(request("Connection: Upgrade, HTTP2-Settings", f"Upgrade: {offers}")).upgrade == b""
    assert read_request(request("Upgrade: websocket")).upgrade == b"", "not without Connection"


ANSWERS = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", b"GET", 3, True),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n", b"GET", 3, False),
    (b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n", b"GET", CHUNKED, True),
    (b"HTTP/1.0 200 OK\r\n", b"GET", UNTIL_CLOSE, False),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", b"HEAD", 0, True),
    (b"HTTP/1.1 204 No Content\r\n", b"GET", 0, True),
    (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n", b"GET", 0, True),
]


@pytest.mark.parametrize(("head", "method", "length", "keep"), ANSWERS)
def test_where_an_answer_ends(head: bytes, method: bytes, length: int, keep: bool) -> None:
    answer = read_response(head, to=method)
    assert (answer.length, answer.keep_alive) == (length, keep)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n",
        b"HTTP/1.1 99 OK\r\n",
        b"SSH-2.0-OpenSSH_9\r\n",
        b"HTTP/1.1 200 OK\r\nbroken\r\n",
    ],
)
def test_an_answer_that_could_be_read_in_two_ways_is_the_pods_mistake(head: bytes) -> None:
    with pytest.raises(BadMessage) as refusal:
        read_response(head, to=b"GET")
    assert refusal.value.status == 502


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=8), st.data())
def test_chunks_are_read_alike_however_they_are_cut(pieces: list[bytes], data: st.DataObject) -> None:
    wire = b"".join(map(chunk, pieces)) + b"0\r\nTrailer: x\r\n\r\nNEXT"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=6)))
    body, content, rest, ended = Chunked(400), b"", b"", False
    for begin, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        if ended:
            rest += wire[begin:end]
        else:
            piece = body.feed(wire[begin:end])
            content, ended, rest = content + piece.content, piece.ended, piece.rest
    assert (content, ended, rest) == (b"".join(pieces), True, b"NEXT")


@pytest.mark.parametrize(
    "wire",
    [b"5\nhello", b"5\r\nhelloX\r\n", b"-5\r\n", b"0x5\r\n", b" 5\r\n", b"\r\n", b"ffffffffffffffffff\r\n", b"5 5\r\n",
     b"5\r\nhello\n", b"5;\0\r\n", b"1" * 5000],
)  # fmt: skip
def test_broken_chunks_are_refused(wire: bytes) -> None:
    body = Chunked(400)
    with pytest.raises(BadMessage):
        body.feed(wire)


def test_a_counted_body_leaves_what_follows() -> None:
    body = Counted(5)
    assert body.feed(b"he") == (b"he", False, b"")
    assert body.feed(b"lloGET") == (b"llo", True, b"GET")


NOISE = st.one_of(
    st.binary(max_size=200),
    st.lists(st.sampled_from([b"GET / HTTP/1.1", b"Host: a", b"Content-Length: 3", b"Transfer-Encoding: chunked", b": ",
                              b"\r\n", b"\n", b"\r", b" ", b"\t", b"\x00", b"HTTP/1.1 200 OK", b"Connection: close"]))
    .map(b"".join),
)  # fmt: skip


@given(NOISE)
def test_noise_is_refused_or_read_and_nothing_else_happens(noise: bytes) -> None:
    for read in (read_request, lambda head: read_response(head, to=b"GET"), lambda data: Chunked(400).feed(data)):
        assert _status(read, noise) in (200, 400, 405, 414, 417, 501, 502, 505)


def _status(read: Callable[[bytes], object], data: bytes) -> int:
    try:
        read(data)
    except BadMessage as refusal:
        return refusal.status
    return 200


@given(NOISE)
def test_what_is_passed_on_is_read_the_same_way_again(noise: bytes) -> None:
    """A pod must find the same request in what we send as we found in what we got."""
    try:
        head = read_request(b"POST /x HTTP/1.1\r\nHost: a.b\r\n" + noise + b"\r\n")
    except BadMessage:
        return
    lines = [] if head.length != CHUNKED else [b"Transfer-Encoding: chunked"]
    sent = render(b"%b %b HTTP/1.1\r\n" % (head.method, head.target), head.headers, *lines)
    assert sent.count(b"\r\n\r\n") == 1
    again = read_request(sent[:-2])
    assert (again.host, again.length, again.target) == (head.host, head.length, head.target)
