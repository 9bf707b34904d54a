"""Clients that do not read their answers: the memory of the hub does not fill with them."""

from __future__ import annotations

import json

import aiohttp
import pytest

from paddlecloud.modelhub.server import server
from unit.modelhub.server.hub import VERSIONS, Hub, described

pytestmark = pytest.mark.parametrize("store", ["folder"], indirect=True)


@pytest.fixture(autouse=True)
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "UNREAD_SECONDS", 0.0)


async def test_a_long_list_of_files_that_is_not_read_in_its_time_is_given_up(hub: Hub) -> None:
    await hub.put(b"")
    files = [described(f"{number}{'x' * 1000}", b"") for number in range(20_000)]
    body = json.dumps({"files": files, "version": "1"}).encode()
    with pytest.raises(aiohttp.ClientError):  # the answer to the push has the list as well
        await hub.ask("POST", VERSIONS, data=body)
    with pytest.raises(aiohttp.ClientError):
        await hub.ask("GET", f"{VERSIONS}/1")
    assert (await hub.ask("GET", VERSIONS)).json == {"versions": ["1"]}  # a short one is
