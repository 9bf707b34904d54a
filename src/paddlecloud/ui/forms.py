"""Fields of forms, as browsers send those of our pages: urlencoded, few, small and at once."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qsl

from aiohttp import web

MOST_BYTES = 64 * 1024
MOST_FIELDS = 32
SECONDS = 10.0
"""Until the whole body is there."""
MOST_UNFINISHED = 64
"""Bodies that are not there yet, of anybody: of more the oldest is given up."""


class BadForm(ValueError):
    """The body is no form of our pages."""


def fields_of(body: bytes) -> dict[str, str]:
    """The last value of each name."""
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError as error:  # not UTF-8, or too many fields
        raise BadForm(str(error)) from error


class Bodies:
    """Reads those of a server. Anybody may begin one, also without a session, and would hold a connection with it."""

    def __init__(self) -> None:
        self._unfinished: dict[asyncio.Task[bytes], None] = {}

    async def read(self, request: web.Request) -> bytes:
        reading = asyncio.ensure_future(request.read())
        self._unfinished[reading] = None
        if len(self._unfinished) > MOST_UNFINISHED:
            next(iter(self._unfinished)).cancel()
        try:
            await asyncio.wait((reading,), timeout=SECONDS)
            if not reading.done() or reading.cancelled():
                raise BadForm("it does not arrive")
            return reading.result()
        finally:
            del self._unfinished[reading]
            reading.cancel()
