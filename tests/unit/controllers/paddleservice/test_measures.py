"""How a revision's answers fared, from what its pods have counted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from paddlecloud.controllers.paddleservice.measures import LONGEST, Counts, Looks, PodMeasures, read
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.metrics import Registry
from paddlecloud.kube.resource import Key
from paddlecloud.kube.transport import Response
from paddlecloud.serving.metrics import Metrics

ME = Key("ns", "m")


def reported(*, good: int = 0, bad: int = 0, seconds: float = 0.004) -> str:
    """What our inference server would say."""
    metrics = Metrics()
    for code, count in (("200", good), ("500", bad)):
        for _ in range(count):
            metrics.requests.inc("m", code)
            metrics.seconds.observe(seconds, "m")
    return metrics.registry.render()


def test_what_our_server_counts_is_read() -> None:
    found = read(reported(good=18, bad=2))
    assert found is not None
    assert (found.requests, found.errors) == (20, 2)
    assert (found.within[0.0025], found.within[0.005]) == (0, 20)


def test_a_server_that_has_answered_nothing_yet_is_known_and_another_is_not() -> None:
    assert read(reported()) == Counts(0, 0, {})
    assert read(Registry().render()) is None
    assert read("<html>") is None


def test_a_pod_that_counts_nonsense_does_not_stop_the_controller() -> None:
    name = "paddlecloud_serving_request_seconds_bucket"
    lines = [f'{name}{{le="{bound}"}} {value}' for bound in ("abc", "nan", "1") for value in ("1.2.3", "e", "1e+99")]
    found = read(reported(good=1) + "\n".join(lines))
    assert found is not None
    assert found.requests == 1


def test_only_the_last_minute_counts() -> None:
    looks = Looks()

    def look(now: float, **counts: Any) -> tuple[int, float]:
        found = read(reported(**counts))
        assert found is not None
        measure = looks.add(now, {"pod": found})
        return measure.requests, measure.error_percent

    assert look(0, good=10, bad=10) == (20, 50.0), "everything since the pod began"
    assert look(30, good=40, bad=10) == (30, 0.0)
    assert look(90, good=90, bad=10) == (50, 0.0), "since the look a minute ago"
    assert look(100, good=4, bad=1) == (5, 20.0), "started again"


@pytest.mark.parametrize(("seconds", "milliseconds"), [(0.004, 5.0), (0.2, 250.0), (60.0, 20_000.0)])
def test_the_95th_percentile_is_the_upper_end_of_its_bucket(seconds: float, milliseconds: float) -> None:
    found = read(reported(good=20, seconds=seconds))
    assert found is not None
    assert Looks().add(0, {"pod": found}).latency_milliseconds == milliseconds


class Pods:
    """An API server with some pods; what each says at /metrics, or its refusal."""

    def __init__(self, answers: Mapping[str, str | int]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def request(self, method: str, path: str, **_: Any) -> Response:
        return Response(200, _list([_pod(name) for name in self._answers]))

    async def stream(self, path: str, **_: Any) -> AsyncIterator[bytes]:
        self.asked.append(path)
        answer = self._answers[path.rpartition(":")[0].rpartition("/")[2]]
        if isinstance(answer, int):
            raise ApiError.from_status(answer, {})
        yield answer.encode()

    async def close(self) -> None: ...


def _list(items: list[Any]) -> bytes:
    return json.dumps({"items": items, "metadata": {}}).encode()


def _pod(name: str) -> dict[str, Any]:
    proxy = {"name": "queue-proxy", "ports": [{"containerPort": 8012}]}
    own = {"name": "paddleserving", "ports": [{"containerPort": 9292}]}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"containers": [proxy, own]}}


async def test_pods_are_asked_at_their_own_port_and_those_that_say_nothing_are_left_out() -> None:
    api = Pods({"a": reported(good=5), "b": reported(good=5, bad=10), "starting": 503, "other": "<html>"})
    measures = PodMeasures(Client(api))
    found = await measures.of(ME, "m-default-1", now=0)
    assert found is not None
    assert (found.requests, found.error_percent) == (20, 50.0)
    assert api.asked[0] == "/api/v1/namespaces/ns/pods/a:9292/proxy/metrics"


@pytest.mark.parametrize("answers", [{}, {"a": 403}, {"a": "<html>"}])
async def test_without_an_answer_there_is_no_measure(answers: Mapping[str, str | int]) -> None:
    assert await PodMeasures(Client(Pods(answers))).of(ME, "m-default-1", now=0) is None


async def test_another_revision_begins_anew() -> None:
    measures = PodMeasures(Client(Pods({"a": reported(good=5)})))
    assert [(await measures.of(ME, name, now=0)).requests for name in ("one", "one", "two")] == [5, 0, 5]  # type: ignore[union-attr]


class Endless(Pods):
    """Its pods answer without end."""

    taken = 0

    async def stream(self, path: str, **_: Any) -> AsyncIterator[bytes]:
        yield reported(good=5).encode()
        while self.taken < 64 * LONGEST:
            self.taken += 65536
            yield b"x" * 65536


async def test_of_an_answer_without_end_only_the_beginning_is_read() -> None:
    api = Endless({"a": ""})
    found = await PodMeasures(Client(api)).of(ME, "m-default-1", now=0)
    assert found is not None
    assert found.requests == 5
    assert api.taken <= LONGEST + 65536
