"""What strangers send to the gateway, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from paddlecloud.local.knative.gateway import bodies, http1
from unit.budgets.inputs import Row, of, times

GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
HEADS: dict[str, Callable[[int], bytes]] = {
    "spaces in a value": times(b" ", b"X: a", b"b\r\n"),
    "tabs at the end": times(b"\t", b"X: a", b"\r\n"),
    "many headers": times(b"a:\r\n"),
    "one long name": times(b"a", b"", b": b\r\n"),
    "a name without a colon": times(b"a"),
    "an unterminated value": times(b"b", b"a: "),
    "many connection headers": times(b"Connection: a\r\n"),
    "commas": times(b",", b"Connection: a", b"\r\n"),
    "forged headers": times(b"X-Forwarded-For: a\r\n"),
    "forged headers of many names": lambda size: b"".join(b"k_%d: a\r\n" % n for n in range(size // 10)),
    "one long forged name": times(b"-", b"x-forwarded", b": a\r\n"),
    "a wrong last line": times(b"a: b\r\n", b"", b"no colon\r\n"),
    "carriage returns": times(b"\r", b"a: b"),
}
CHUNKED: dict[str, Callable[[int], bytes]] = {
    "tiny chunks": times(b"1\r\nx\r\n"),
    "extensions": times(b"1;a=b\r\nx\r\n"),
    "one chunk": lambda size: b"%x\r\n" % size + b"x" * size,
    "trailers": times(b"a:b\r\n", b"0\r\n"),
}


def by_bytes(reader: Any, data: bytes, step: int = 1) -> None:
    for at in range(0, len(data), step):
        reader.feed(data[at : at + step])


def gateway() -> Iterator[Row]:
    for name, make in HEADS.items():
        yield Row("gateway: head of a request", name, of(make, GET.__add__), http1.read_request)
        yield Row("gateway: head of an answer", name, of(make, OK.__add__), partial(http1.read_response, to=b"GET"))
    yield Row("gateway: head of a request", "a long host", times(b"a.", b"GET / HTTP/1.1\r\nHost: ", b"!\r\n"),
              http1.read_request)  # fmt: skip
    yield Row("gateway: head of a request", "a long target", times(b"/a", b"GET http://a", b" HTTP/1.1\r\nHost: a\r\n"),
              http1.read_request)  # fmt: skip
    for name, make in CHUNKED.items():
        yield Row("gateway: chunked body", name, make, lambda data: bodies.Chunked(400).feed(data))
        yield Row("gateway: chunked body", f"{name}, in pieces", make, lambda d: by_bytes(bodies.Chunked(400), d, 7))
