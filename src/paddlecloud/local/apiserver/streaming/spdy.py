"""SPDY/3.1 on the wire: from bytes to frames and back, as far as Kubernetes uses it.

kubectl and older clients tunnel exec and port-forward through this protocol, long after the web forgot it. Header
blocks are compressed with one zlib stream per direction, so a decoder and an encoder live as long as their connection
and must see every frame in order. Sizes are bounded on the way in: nothing here trusts the other side.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

VERSION = 3
SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN = 0x01

MAX_FRAME = 1024 * 1024
MAX_HEADER_BLOCK = 4 * 1024
"""Names of streams and numbers of ports are short; compressed, a hundred bytes could ask for a megabyte."""

_WORDS = """
options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow
authorization cache-control connection content-base content-encoding content-language content-length content-location
content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match
if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range
referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get
status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin
"""
_TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = (
    b"".join(len(word).to_bytes(4, "big") + word.replace("_", " ").encode() for word in _WORDS.split()) + _TEXT.encode()
)
"""The compression dictionary of the SPDY/3 draft (2.6.10.1): words with their lengths, then text as it is."""

_CONTROL = struct.Struct("!HHI")
_DATA = struct.Struct("!II")
_WORD = struct.Struct("!I")


class ProtocolError(Exception):
    """The other side broke the rules; the connection cannot go on."""


class Frame(NamedTuple):
    """One frame. `kind` None is data; `headers` are those of SYN_STREAM, SYN_REPLY and HEADERS.

    `value` holds the status of RST_STREAM and GOAWAY, the id of PING and the size of WINDOW_UPDATE.
    """

    kind: int | None
    stream: int
    fin: bool = False
    headers: Mapping[str, str] | None = None
    data: bytes = b""
    value: int = 0


class Decoder:
    """Takes bytes as they come, gives whole frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._buffer += data
        while len(self._buffer) >= 8:
            first, second = _DATA.unpack_from(self._buffer)
            flags, length = second >> 24, second & 0xFFFFFF
            if length > MAX_FRAME:
                raise ProtocolError(f"a frame of {length} bytes is too large")
            if len(self._buffer) < 8 + length:
                return
            body = bytes(self._buffer[8 : 8 + length])
            del self._buffer[: 8 + length]
            if first >> 31:
                frame = self._control(first, flags, body)
                if frame is not None:
                    yield frame
            else:
                yield Frame(None, first, bool(flags & FIN), data=body)

    def _control(self, first: int, flags: int, body: bytes) -> Frame | None:
        version, kind = first >> 16 & 0x7FFF, first & 0xFFFF
        if version != VERSION:
            raise ProtocolError(f"SPDY version {version} is not supported")
        fin = bool(flags & FIN)
        if kind == SYN_STREAM:
            return Frame(kind, _word(body, 0), fin, headers=self._headers(body[10:]))
        if kind in (SYN_REPLY, HEADERS):
            return Frame(kind, _word(body, 0), fin, headers=self._headers(body[4:]))
        if kind in (RST_STREAM, WINDOW_UPDATE):
            return Frame(kind, _word(body, 0), value=_word(body, 4))
        if kind == PING:
            return Frame(kind, 0, value=_word(body, 0))
        if kind == GOAWAY:
            return Frame(kind, _word(body, 0), value=_word(body, 4))
        return None  # SETTINGS and what later versions may bring: the draft says to ignore them

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(block, MAX_HEADER_BLOCK)
        except zlib.error as error:
            raise ProtocolError("a header block is not compressed as it should be") from error
        if self._inflate.unconsumed_tail:
            raise ProtocolError("a header block is too large")
        count, position = _word(plain, 0), 4
        headers: dict[str, str] = {}
        for _ in range(count):
            name, position = _text(plain, position)
            value, position = _text(plain, position)
            headers[name.lower()] = value.replace("\0", ", ")
        return headers


def _word(data: bytes, position: int) -> int:
    if len(data) < position + 4:
        raise ProtocolError("a frame ends too early")
    number: int = _WORD.unpack_from(data, position)[0]
    return number


def _text(data: bytes, position: int) -> tuple[str, int]:
    start = position + 4
    end = start + _word(data, position)
    if end > len(data):
        raise ProtocolError("a header block ends too early")
    return data[start:end].decode("latin-1"), end


class Encoder:
    """Frames to bytes; what is encoded must be sent, in this order."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(level=6, zdict=DICTIONARY)

    def syn_stream(self, stream: int, headers: Mapping[str, str], *, fin: bool = False) -> bytes:
        return _control(SYN_STREAM, struct.pack("!IIH", stream, 0, 0) + self._headers(headers), fin=fin)

    def syn_reply(self, stream: int, headers: Mapping[str, str] | None = None, *, fin: bool = False) -> bytes:
        return _control(SYN_REPLY, _WORD.pack(stream) + self._headers(headers or {}), fin=fin)

    def _headers(self, headers: Mapping[str, str]) -> bytes:
        plain = [_WORD.pack(len(headers))]
        for pair in headers.items():
            for text in pair:
                encoded = text.encode("latin-1", "replace")
                plain += [_WORD.pack(len(encoded)), encoded]
        return self._deflate.compress(b"".join(plain)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def data_frame(stream: int, data: bytes, *, fin: bool = False) -> bytes:
    return _DATA.pack(stream, (FIN << 24 if fin else 0) | len(data)) + data


def reset(stream: int, status: int) -> bytes:
    return _control(RST_STREAM, _DATA.pack(stream, status))


def ping(number: int) -> bytes:
    return _control(PING, _WORD.pack(number))


def go_away(last_stream: int, status: int = 0) -> bytes:
    return _control(GOAWAY, _DATA.pack(last_stream, status))


def _control(kind: int, body: bytes, *, fin: bool = False) -> bytes:
    return _CONTROL.pack(0x8000 | VERSION, kind, (FIN << 24 if fin else 0) | len(body)) + body
