"""The place of a proxied request is free again, however the request ends."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from paddlecloud.local.apiserver.proxy import exchange


async def test_the_place_is_free_again_where_the_client_leaves_while_the_exchange_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, freed = ExitStack(), []
    held.callback(freed.append, True)
    body = exchange._Body(held)
    closing = asyncio.Event()
    close = body._session.close

    async def close_slowly() -> None:
        closing.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(body._session, "close", close_slowly)
    ending = asyncio.ensure_future(body.aclose())
    await closing.wait()
    ending.cancel()
    await asyncio.gather(ending, return_exceptions=True)
    assert freed == [True]
    await close()
