"""Events: one object per thing said, counted when it is said again, never a reason to fail."""

from __future__ import annotations

import pytest
from kube_mini import MiniServer

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.errors import Forbidden, Unreachable
from paddlecloud.kube.events import BURST, REFILL, EventRecorder
from paddlecloud.kube.resource import Object

NS = "/api/v1/namespaces/ns/events"
JOB: Object = {
    "apiVersion": "batch.paddlepaddle.org/v1",
    "kind": "PaddleJob",
    "metadata": {"name": "job", "namespace": "ns", "uid": "u1", "resourceVersion": "5"},
}


@pytest.fixture
def server() -> MiniServer:
    return MiniServer()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def recorder(server: MiniServer, clock: FakeClock) -> EventRecorder:
    return EventRecorder(Client(server), component="paddlejob-controller", clock=clock)


def events(server: MiniServer) -> list[Object]:
    return [obj for path, obj in server.objects.items() if "/events/" in path]


async def test_an_event_says_what_happened_to_whom(server: MiniServer, clock: FakeClock) -> None:
    await recorder(server, clock).record(JOB, "Created", "created 128 pods")
    (event,) = events(server)
    assert event["involvedObject"] == {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "name": "job",
        "namespace": "ns",
        "uid": "u1",
        "resourceVersion": "5",
    }
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Created", "created 128 pods")
    assert event["source"] == {"component": "paddlejob-controller"}
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2023-11-14T22:13:20Z"


async def test_the_same_again_is_counted_not_repeated(server: MiniServer, clock: FakeClock) -> None:
    source = recorder(server, clock)
    for _ in range(3):
        await source.record(JOB, "Waiting", "no room", type="Warning")
        await clock.advance(60)
    await source.record(JOB, "Waiting", "no room on node 2", type="Warning")
    first, second = sorted(events(server), key=lambda e: -int(e["count"]))
    assert (first["count"], first["firstTimestamp"], first["lastTimestamp"]) == (
        3,
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:15:20Z",
    )
    assert second["count"] == 1
    assert [w[0] for w in server.writes()] == ["POST", "PATCH", "PATCH", "POST"]


async def test_a_restarted_controller_goes_on_counting(server: MiniServer, clock: FakeClock) -> None:
    await recorder(server, clock).record(JOB, "Waiting", "no room")
    await recorder(server, clock).record(JOB, "Waiting", "no room")
    (event,) = events(server)
    assert event["count"] == 2


async def test_an_event_the_server_has_forgotten_is_written_anew(server: MiniServer, clock: FakeClock) -> None:
    source = recorder(server, clock)
    await source.record(JOB, "Waiting", "no room")
    server.drop(NS, server.names(NS)[0])
    await source.record(JOB, "Waiting", "no room")
    assert [e["count"] for e in events(server)] == [1]


@pytest.mark.parametrize("error", [Forbidden("no events for you"), Unreachable("gone")])
async def test_an_event_that_cannot_be_written_is_dropped(
    server: MiniServer, clock: FakeClock, error: Exception
) -> None:
    server.refuse = lambda method, path: error  # type: ignore[assignment, return-value]
    await recorder(server, clock).record(JOB, "Created", "x")
    assert events(server) == []


async def test_too_much_about_one_object_is_dropped_until_time_has_passed(server: MiniServer, clock: FakeClock) -> None:
    source = recorder(server, clock)
    for n in range(BURST + 10):
        await source.record(JOB, "Noise", f"complaint {n}")
    assert len(events(server)) == BURST
    other = {**JOB, "metadata": {**JOB["metadata"], "name": "other", "uid": "u2"}}
    await source.record(other, "Created", "x")
    assert len(events(server)) == BURST + 1
    await clock.advance(REFILL)
    await source.record(JOB, "Noise", "later")
    assert len(events(server)) == BURST + 2


async def test_events_about_cluster_wide_objects_live_in_default_and_long_texts_are_cut(
    server: MiniServer, clock: FakeClock
) -> None:
    node: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n" * 253, "uid": "n"}}
    await recorder(server, clock).record(node, "NotReady", "x" * 5000)
    (event,) = events(server)
    assert event["metadata"]["namespace"] == "default"
    assert len(event["metadata"]["name"]) <= 253
    assert len(event["message"]) == 1024
