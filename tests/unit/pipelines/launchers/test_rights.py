"""Launchers whose account may do little, and API servers that do not answer at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from harness import eventually
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError, Forbidden, InternalError, NotFound, ServiceUnavailable, Unauthorized
from paddlecloud.kube.resource import Object
from paddlecloud.kube.transport import JSON, Response
from paddlecloud.pipelines.launchers import __main__ as edge
from paddlecloud.pipelines.launchers import pod_logs, transient
from paddlecloud.pipelines.launchers.pod_logs import PodLogs

POD: Object = {
    "metadata": {"name": "p", "uid": "u", "ownerReferences": [{"kind": "Workflow", "uid": "run-1"}]},
    "spec": {"containers": [{"name": "main", "image": "x/paddlecloud/pipeline:1"}]},
    "status": {"containerStatuses": [{"name": "main", "state": {"running": {}}}]},
}


class Answers:
    """A transport: GETs are answered with the next of these, the last one again and again; streams of logs too."""

    def __init__(self, *answers: Object | ApiError, log: ApiError | bytes = b"") -> None:
        self._answers = list(answers)
        self._log = log
        self.asked = 0
        self.logs = 0

    async def request(self, method: str, path: str, **rest: Any) -> Response:
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ApiError):
            raise answer
        return Response(200, json.dumps(answer).encode())

    async def stream(
        self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON
    ) -> AsyncIterator[bytes]:
        if path.endswith("/log"):
            self.logs += 1
            if isinstance(self._log, ApiError):
                raise self._log
            yield self._log
        elif isinstance(self._answers[0], ApiError):
            raise self._answers[0]
        else:
            await asyncio.Event().wait()  # a watch without changes

    async def close(self) -> None: ...


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    class Immediately(transient.Backoff):
        def next(self) -> float:
            return 0.0

    monkeypatch.setattr(transient, "Backoff", Immediately)
    monkeypatch.setattr(pod_logs, "PAUSE", 0.0)


@pytest.mark.parametrize("error", [ServiceUnavailable("restarts"), InternalError("etcd"), ServiceUnavailable("busy")])
async def test_a_step_knows_its_run_also_where_the_api_server_answers_late(error: ApiError) -> None:
    found = await edge.own_pod(Client(Answers(error, error, POD)), "n")
    assert edge.identity(found) == ("run-1", "x/paddlecloud/pipeline:1")


@pytest.mark.parametrize(
    ("error", "warning"),
    [(NotFound("outside of a cluster"), ""), (Forbidden("pods is forbidden"), "another attempt of this run will not")],
)
async def test_a_step_that_may_not_read_its_pod_is_a_run_of_its_own(
    error: ApiError, warning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    transport = Answers(error)
    assert await edge.own_pod(Client(transport), "n") is None
    assert transport.asked == 1
    said = capsys.readouterr().out
    assert warning in said
    assert bool(said) == bool(warning)


@pytest.mark.parametrize("error", [Unauthorized("the token has ended"), ServiceUnavailable("for ever")])
async def test_a_step_that_cannot_know_its_run_fails(error: ApiError) -> None:
    """With an id of this attempt alone, the work of an earlier one would be begun again beside it."""
    with pytest.raises(type(error)):
        await edge.own_pod(Client(Answers(error)), "n", patience=-1.0)


async def test_that_pods_may_not_be_listed_is_reported_once() -> None:
    lines: list[str] = []
    transport = Answers(Forbidden('User "a" cannot list pods'))
    logs = PodLogs(Client(transport), "n", "a=b", lines.append)
    await eventually(lambda: transport.asked > 3)
    await logs.close(drain=True)
    assert lines == ['warning: logs of pods are not copied: User "a" cannot list pods']


async def test_that_a_log_may_not_be_read_is_reported_once_and_the_end_does_not_wait_for_it() -> None:
    lines: list[str] = []
    pods = [{**POD, "metadata": {**POD["metadata"], "name": name, "uid": name}} for name in ("p1", "p2")]
    listed = {"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": pods}
    transport = Answers(listed, log=Forbidden('User "a" cannot get pods/log'))
    logs = PodLogs(Client(transport), "n", "a=b", lines.append)
    await eventually(lambda: transport.logs == 2)
    await asyncio.wait_for(logs.close(drain=True), pod_logs.DRAIN_SECONDS / 2)
    assert lines == ['warning: logs of pods are not copied: User "a" cannot get pods/log']
    assert transport.logs == 2
