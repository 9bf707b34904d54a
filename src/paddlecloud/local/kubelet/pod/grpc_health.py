"""One question in gRPC: is the service well? What a `grpc` probe asks, in the few frames of HTTP/2 that it takes.

No library is worth its weight for a single call: the request is constant but for the service's name, and of the answer
only the message counts. Header compression of the answer is not undone, so an error of the server is not distinguished
from another.
"""

from __future__ import annotations

import asyncio
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
ACK = END_STREAM = 1
END_HEADERS = 4
STREAM = 1
MAX_ANSWER = 64 * 1024

STATES = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}
SERVING = "SERVING"


class NoAnswer(ValueError):
    """The server has no health service, or does not know the service asked for."""


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def request(service: str, authority: str) -> bytes:
    """Everything a client sends, settings included."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": authority,
        "content-type": "application/grpc",
        "te": "trailers",
        "user-agent": "kube-probe/1.34",
    }
    block = b"".join(b"\x00" + _text(name) + _text(value) for name, value in headers.items())
    name = service.encode()
    message = b"\x0a" + _varint(len(name)) + name if name else b""
    return (
        PREFACE
        + frame(SETTINGS)
        + frame(HEADERS, block, flags=END_HEADERS, stream=STREAM)
        + frame(DATA, b"\x00" + struct.pack(">I", len(message)) + message, flags=END_STREAM, stream=STREAM)
    )


def _text(text: str) -> bytes:
    """A header's name or value, literal and uncompressed; ours are all shorter than the one-byte length allows."""
    data = text.encode()
    assert len(data) < 127, text
    return bytes([len(data)]) + data


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def state_in(message: bytes) -> str:
    """The state in a HealthCheckResponse; an empty one is state 0."""
    if len(message) < 5:
        raise NoAnswer("the server gave no answer: it may lack grpc.health.v1.Health, or not know the service")
    body = message[5:]
    return STATES.get(body[1] if body[:1] == b"\x08" and len(body) > 1 else 0, "UNKNOWN")


async def check(host: str, port: int, service: str) -> str:
    """The state of a service, by name. Raises `OSError`, `asyncio.IncompleteReadError` and `NoAnswer`."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(request(service, f"{host}:{port}"))
        message = b""
        while len(message) < MAX_ANSWER:
            head = await reader.readexactly(9)
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
            if kind in (SETTINGS, PING) and not flags & ACK:
                writer.write(frame(kind, b"" if kind == SETTINGS else payload, flags=ACK))
            elif kind in (RST_STREAM, GOAWAY):
                break
            elif stream == STREAM:
                message += payload if kind == DATA else b""
                if flags & END_STREAM:
                    break
        return state_in(message)
    finally:
        writer.close()
