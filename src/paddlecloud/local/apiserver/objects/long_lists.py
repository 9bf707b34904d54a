"""Long lists: each takes memory and time in proportion to what somebody stored, from its rendering until it was sent.

Those of one tenant have a share of the memory together, or one of them all that it needs; its others wait. A few are
rendered at a time, which is done in pieces: lists of some tenants do not hold up the requests of others.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from paddlecloud.local.apiserver.http.limits import MOST_UNREAD
from paddlecloud.local.apiserver.http.request import Response
from paddlecloud.local.store.record import Record

LONG = 1024 * 1024
"""Bytes of stored objects from which on a list is long."""
MOST_OF_A_TENANT = MOST_UNREAD // 2
RENDERED_AT_ONCE = 4


class LongLists:
    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._rendering = asyncio.Semaphore(RENDERED_AT_ONCE)

    async def answer(self, tenant: str, records: Sequence[Record], render: Callable[[], Awaitable[bytes]]) -> Response:
        """The answer that `render` makes of these records. It counts until nobody has it any more."""
        size = sum(len(record.value) for record in records)
        if size <= LONG:
            return Response(body=await render())
        await self._room(tenant, size)
        answer = Response()
        loop = asyncio.get_running_loop()
        weakref.finalize(answer, loop.call_soon_threadsafe, self._release, tenant, size).atexit = False
        async with self._rendering:
            answer.body = await render()
        return answer

    async def _room(self, tenant: str, size: int) -> None:
        while self._held[tenant] and self._held[tenant] + size > MOST_OF_A_TENANT:
            freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(tenant, []).append(freed)
            await freed
        self._held[tenant] += size

    def _release(self, tenant: str, size: int) -> None:
        self._held[tenant] -= size
        if not self._held[tenant]:
            del self._held[tenant]
        for waiting in self._waiting.pop(tenant, ()):
            if not waiting.done():
                waiting.set_result(None)
