"""The label by which a Service finds the replica that leads is set in the end, whatever the server says at first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paddlecloud.controllers.__main__ import LEADS, _mark
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.errors import ApiError, Forbidden, NotFound, Unreachable


class Refusing(Client):
    """Refuses with these errors, one after the other, then obeys."""

    def __init__(self, *errors: ApiError) -> None:
        self._errors = list(errors)
        self.labels: list[str | None] = []

    async def patch(self, resource: Any, name: str, body: Any, **_: Any) -> Any:
        if self._errors:
            raise self._errors.pop(0)
        self.labels.append(body["metadata"]["labels"][LEADS])


@pytest.mark.parametrize(
    ("errors", "marked"),
    [
        ((), ["paddlejob"]),
        ((Unreachable("connection refused"), Unreachable("connection refused")), ["paddlejob"]),
        ((Forbidden("roles are not known yet"),), ["paddlejob"]),
        ((NotFound("no such pod"),), []),
    ],
    ids=["at-once", "after-an-outage", "after-a-start", "in-no-pod"],
)
async def test_the_mark_is_set_as_soon_as_it_may_be(
    monkeypatch: pytest.MonkeyPatch, errors: tuple[ApiError, ...], marked: list[str]
) -> None:
    monkeypatch.setenv("POD_NAME", "pod-1")
    clock, client = FakeClock(), Refusing(*errors)
    task = asyncio.ensure_future(_mark(client, "default", "paddlejob", clock=clock))
    await clock.advance(10)
    await task
    assert client.labels == marked
