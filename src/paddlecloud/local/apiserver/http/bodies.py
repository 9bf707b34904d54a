"""Bodies of requests: each is read within a limit and in time, and all together have a share of the memory.

Otherwise anybody with an account could fill it, whatever they may do here: a request with nearly all of its body on
every connection. kube-apiserver ends a request after a minute, too (`--request-timeout`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack

from aiohttp import StreamReader, web

from paddlecloud.kube import errors
from paddlecloud.local.apiserver.auth.authentication import MASTERS, User
from paddlecloud.local.apiserver.http.limits import BODY_TIMEOUT, MAX_BODY
from paddlecloud.local.apiserver.http.shares import tenant_of

SMALL = 64 * 1024
"""Bytes of a body that counts for nothing if all of it is here at once, as nearly all are."""


class Bodies:
    """All together have `most` bytes until their requests are answered, one tenant half; administrators are let in."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()

    async def read(self, incoming: web.BaseRequest, user: User, served: ExitStack) -> bytes:
        """The body, read no further than the limit. It counts until `served` is closed."""
        length, content = incoming.content_length, incoming.content
        if length is not None and length > MAX_BODY:
            raise errors.RequestEntityTooLarge(f"the request body is {length} bytes; the limit is {MAX_BODY}")
        if length is not None and length <= SMALL and content.is_eof():
            return content.read_nowait()
        timer = asyncio.get_running_loop().call_later(BODY_TIMEOUT, content.set_exception, asyncio.TimeoutError())
        try:
            return await self._gather(content, user, served)
        except asyncio.TimeoutError:
            raise errors.Timeout(f"the request body did not arrive within {BODY_TIMEOUT:.0f} s") from None
        finally:
            timer.cancel()

    async def _gather(self, content: StreamReader, user: User, served: ExitStack) -> bytes:
        tenant, chunks, size = tenant_of(user), [], 0
        async for chunk in content.iter_any():
            size += len(chunk)
            if size > MAX_BODY:
                raise errors.RequestEntityTooLarge(f"the request body is larger than the limit of {MAX_BODY} bytes")
            if MASTERS not in user.groups:
                self._take(tenant, len(chunk), served)
            chunks.append(chunk)
        return b"".join(chunks)

    def _take(self, tenant: str, size: int, served: ExitStack) -> None:
        if self._held[tenant] + size > self._most // 2 or self._held.total() + size > self._most:
            raise errors.TooManyRequests(
                f"the bodies of requests in progress are too large together: {tenant} has at most "
                f"{self._most >> 21} MiB of them; send them one after the other",
                retry_after=1,
            )
        self._held[tenant] += size
        served.callback(self._give_back, tenant, size)

    def _give_back(self, tenant: str, size: int) -> None:
        self._held[tenant] -= size
        if not self._held[tenant]:
            del self._held[tenant]
