"""The autoscaler with a clock that moves on request: from zero to one, to many, and back to zero."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import pytest

from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.errors import NotFound
from paddlecloud.local.knative.autoscaler import Autoscaler, Scene
from paddlecloud.local.knative.settings import Defaults

NAME = "ns/r"


class ScaledRevision:
    """A revision whose pods are ready as soon as they are asked for."""

    def __init__(self, clock: FakeClock, **annotations: str) -> None:
        self.clock = clock
        self.pods = 1
        self.asked: list[int] = []
        self.reachable = True
        self.gone = False
        marks = {f"autoscaling.knative.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
        self.revision = {
            "metadata": {"name": "r", "namespace": "ns", "annotations": marks},
            "status": {"conditions": [{"type": "ContainerHealthy", "status": "True"}]},
        }
        self.autoscaler = Autoscaler(cast(Any, self), clock=clock, scenes=self._scenes, defaults=Defaults)

    def _scenes(self, name: str | None) -> Iterable[Scene]:
        if name in (None, NAME):
            yield Scene(self.revision, {"spec": {"replicas": self.pods}}, ready=self.pods, reachable=self.reachable)

    async def patch(self, resource: Any, name: str, patch: Any, *, namespace: str) -> None:
        """The API client's part."""
        assert (name, namespace) == ("r-deployment", "ns")
        if self.gone:
            raise NotFound("it was deleted")
        self.pods = patch["spec"]["replicas"]
        self.asked.append(self.pods)

    async def carry(self, seconds: int, concurrency: float) -> None:
        """So many requests in progress for so long, reported by one gateway every second."""
        for _ in range(seconds):
            if concurrency:
                codes = {"200": round(concurrency)}
                report = {"concurrency": concurrency, "inside": round(concurrency), "span": 1.0, "codes": codes}
                self.autoscaler.receive({NAME: report})
            await self.clock.advance(1)


@pytest.fixture
async def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def world(clock: FakeClock) -> AsyncIterator[ScaledRevision]:
    made = ScaledRevision(clock)
    task = asyncio.ensure_future(made.autoscaler.run())
    await clock.settle()
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_from_one_to_none_to_one_to_many_and_back(world: ScaledRevision, clock: FakeClock) -> None:
    await world.carry(89, 0)
    assert world.pods == 1, "sixty seconds of window, thirty of grace"
    await world.carry(6, 0)
    assert world.pods == 0
    world.autoscaler.wake(NAME)
    await clock.settle()
    assert world.pods == 1, "a request does not wait for the next round"
    await world.carry(30, 700)
    assert world.pods == 10
    await world.carry(25, 70)
    assert world.pods == 10, "sudden load is remembered for a window"
    await world.carry(200, 0)
    assert world.pods == 0
    assert sorted(set(world.asked[2:]), reverse=True)[0] == 10


async def test_a_revision_without_routes_is_put_to_sleep_at_the_next_round(world: ScaledRevision) -> None:
    world.reachable = False
    await world.carry(3, 0)
    assert world.pods == 0


async def test_what_was_deleted_meanwhile_is_no_error(world: ScaledRevision) -> None:
    world.gone = True
    await world.carry(200, 0)
    world.gone = False
    await world.carry(4, 0)
    assert world.pods == 0, "and it goes on"


async def test_requests_per_second_count_where_they_are_the_metric(clock: FakeClock) -> None:
    world = ScaledRevision(clock, metric="rps", target="10")
    task = asyncio.ensure_future(world.autoscaler.run())
    await world.carry(70, 35)
    assert world.pods == 5
    task.cancel()


@pytest.mark.parametrize("value", ["inf", "nan", "1e999", "-5"])
@pytest.mark.parametrize("name", ["min_scale", "window", "target", "activation_scale", "scale_down_delay"])
async def test_an_annotation_that_is_no_number_within_bounds_counts_as_not_given(
    clock: FakeClock, name: str, value: str
) -> None:
    """All revisions are looked at in one round: what ends it would end the scaling of every namespace."""
    world = ScaledRevision(clock, **{name: f"{value}s" if name in ("window", "scale_down_delay") else value})
    task = asyncio.ensure_future(world.autoscaler.run())
    await world.carry(100, 0)
    assert world.pods == 0
    world.autoscaler.wake(NAME)
    await clock.settle()
    assert world.pods == 1
    task.cancel()
