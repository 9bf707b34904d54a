"""A gateway that leads one host to one pod."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from unit.local.knative.gateway_world import Gateway, Pod, R, gateway


@pytest.fixture
async def gate() -> AsyncIterator[Gateway]:
    async with gateway() as made:
        made.route(R)
        yield made


@pytest.fixture
async def pod(gate: Gateway) -> AsyncIterator[Pod]:
    async with Pod() as made:
        gate.pods(made.entry())
        yield made
