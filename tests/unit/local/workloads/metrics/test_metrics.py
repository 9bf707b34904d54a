"""Rates for `kubectl top`: right over any window, quick for who asks first, and forgetful."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from harness import eventually
from paddlecloud.kube.clock import FakeClock
from paddlecloud.local.kubelet.node.usage import Usage
from paddlecloud.local.workloads.metrics.api import node_metrics, pod_metrics
from paddlecloud.local.workloads.metrics.meter import GLANCE, LONGEST, RENEW, Meter, Rate
from unit.local.workloads.cluster import START, make


class Machine:
    """One pod whose container burns `cores` and holds some memory."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.cores = 0.5
        self.burnt = 100.0
        self.containers = ["main"]
        self.meter = Meter(self.read, self.clock)

    def read(self, uid: str) -> Mapping[str, Usage]:
        return {name: Usage(self.burnt, 64 << 20) for name in self.containers}

    async def pass_time(self, seconds: float) -> None:
        self.burnt += seconds * self.cores
        await self.clock.advance(seconds)

    async def ask(self, *, waits: bool = False) -> dict[str, Rate]:
        asking = asyncio.ensure_future(self.meter.measure(["pod"]))

        async def answered() -> bool:
            if waits and self.clock._sleepers:
                await self.pass_time(GLANCE)
            return asking.done()

        await eventually(answered, what="the reading is done in a thread")
        return (await asking)["pod"]


async def test_who_asks_first_waits_a_moment_for_a_rate() -> None:
    machine = Machine()
    rate = (await machine.ask(waits=True))["main"]
    assert rate.cores == pytest.approx(0.5)
    assert rate.memory == 64 << 20
    assert rate.window == pytest.approx(GLANCE)


async def test_who_asks_first_sees_a_program_that_works_in_short_bursts() -> None:
    """Training computes for 50 ms and waits for its data for the rest of each half second."""
    machine = Machine()
    began = machine.clock.monotonic()

    def read(uid: str) -> Mapping[str, Usage]:
        return {"main": Usage((machine.clock.monotonic() - began + 0.1) // 0.5 * 0.05, 64 << 20)}

    machine.meter = Meter(read, machine.clock)
    assert (await machine.ask(waits=True))["main"].cores == pytest.approx(0.1)


async def test_a_container_that_begins_between_two_readings_has_used_nothing_yet() -> None:
    machine = Machine()
    began = machine.pass_time

    async def begins(seconds: float) -> None:
        machine.containers = ["main", "late"]
        await began(seconds)

    machine.pass_time = begins  # type: ignore[method-assign]
    rates = await machine.ask(waits=True)
    assert rates["main"].cores == pytest.approx(0.5)
    assert (rates["late"].cores, rates["late"].memory) == (0.0, 64 << 20)


async def test_who_asks_again_is_answered_at_once_with_the_rate_since() -> None:
    machine = Machine()
    await machine.ask(waits=True)
    machine.cores = 1.5
    await machine.pass_time(5)
    rate = (await machine.ask())["main"]
    assert rate.cores == pytest.approx((0.5 * GLANCE + 1.5 * 5) / (5 + GLANCE))
    await machine.pass_time(RENEW)
    await machine.ask()
    machine.cores = 0.0
    await machine.pass_time(2)
    assert (await machine.ask())["main"].cores == pytest.approx(0.0), "the reading compared to is renewed"


async def test_what_is_too_old_is_forgotten_and_what_restarted_never_counts_negative() -> None:
    machine = Machine()
    await machine.ask(waits=True)
    await machine.pass_time(LONGEST + 1)
    assert (await machine.ask(waits=True))["main"].window == pytest.approx(GLANCE)
    await machine.pass_time(1)
    machine.burnt = 0.0
    assert (await machine.ask())["main"].cores == 0.0
    machine.containers = []
    assert await machine.ask() == {}


def test_objects_are_those_kubectl_top_reads() -> None:
    rates = {"b": Rate(0.25, 2048, 1.5), "a": Rate(1.0, 1 << 20, 1.5)}
    pod = pod_metrics(make("Pod", "v1", "p", {}, labels={"app": "x"}), rates, START)
    assert (pod["kind"], pod["apiVersion"], pod["window"]) == ("PodMetrics", "metrics.k8s.io/v1beta1", "1.500s")
    assert pod["containers"] == [
        {"name": "a", "usage": {"cpu": "1000000000n", "memory": "1024Ki"}},
        {"name": "b", "usage": {"cpu": "250000000n", "memory": "2Ki"}},
    ]
    assert node_metrics(make("Node", "v1", "n", {}), rates.values(), START)["usage"] == {
        "cpu": "1250000000n",
        "memory": "1026Ki",
    }
