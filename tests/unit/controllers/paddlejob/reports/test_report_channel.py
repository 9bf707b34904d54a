"""The listener that pods report to: who is let in, what is taken, and what the whole controller makes of it."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from harness import eventually
from paddlecloud.controllers.paddlejob.reports import token
from paddlecloud.controllers.paddlejob.reports.listener import BODY_LIMIT, BURST, Channel, ListenAddress, Report
from paddlecloud.controllers.paddlejob.status import LATER
from paddlecloud.data.report import sign
from paddlecloud.kube.clock import FakeClock, parse_rfc3339
from paddlecloud.kube.resource import CONFIGMAPS, PADDLEJOBS, PODS, SECRETS, Key, Object
from unit.controllers.paddlejob.test_controller import Cluster, cluster_of

PATH = "/report/default/job/0/worker/0"


class ReportSender:
    def __init__(self, url: str, session: aiohttp.ClientSession, taken: list[Report], clock: FakeClock) -> None:
        self.url, self.session, self.taken, self.clock = url, session, taken, clock

    async def post(self, path: str = PATH, body: bytes = b"{}", bearer: str = "good") -> int:
        return await self.send(path, body, f"Signed {sign(bearer, path.encode(), body)}")

    async def send(self, path: str, body: bytes, authorization: str) -> int:
        headers = {"Authorization": authorization}
        async with self.session.post(self.url + path, data=body, headers=headers) as answer:
            return answer.status


@pytest.fixture
async def world() -> AsyncIterator[ReportSender]:
    taken: list[Report] = []
    clock = FakeClock()
    channel = Channel(lambda key: "good" if key == Key("default", "job") else "", taken.append, clock=clock)
    async with channel.serve(ListenAddress()) as url, aiohttp.ClientSession() as session:
        yield ReportSender(url, session, taken, clock)


async def test_a_report_is_taken_with_who_sent_it(world: ReportSender) -> None:
    assert await world.post("/report/default/job/3/worker/1", b'{"step": 7, "fieldOfTheFuture": 1}') == 204
    (report,) = world.taken
    assert (report.job, report.generation, report.rank, report.message.step) == (
        Key("default", "job"),
        3,
        ("worker", 1),
        7,
    )


@pytest.mark.parametrize(
    ("path", "bearer", "body", "status"),
    [
        pytest.param(PATH, "bad", b"{}", 401, id="wrong token"),
        pytest.param(PATH, "", b"{}", 401, id="no token"),
        pytest.param("/report/default/other/0/worker/0", "good", b"{}", 401, id="a job that is not there"),
        pytest.param("/report/default/job/0/chief/0", "good", b"{}", 404, id="no such role"),
        pytest.param("/report/default/job/x/worker/0", "good", b"{}", 404, id="no generation"),
        pytest.param("/report/default/job/0/worker/9999999999", "good", b"{}", 404, id="no index"),
        pytest.param("/", "good", b"{}", 404, id="another path"),
        pytest.param(PATH, "good", b"step 7", 400, id="no JSON"),
        pytest.param(PATH, "good", b'{"step": -1}', 400, id="a step before the first"),
        pytest.param(PATH, "good", b'{"step": "seven"}', 400, id="no number"),
        pytest.param(PATH, "good", b'{"loss": NaN}', 400, id="not a number"),
        pytest.param(PATH, "good", b"[" * 5000, 400, id="deep"),
        pytest.param(PATH, "good", b'{"fieldOfTheFuture":' + b"[" * 50_000, 400, id="deep where nothing is read"),
        pytest.param(PATH, "good", b" " * (BODY_LIMIT + 1), 413, id="too large"),
    ],
)
async def test_what_is_refused(world: ReportSender, path: str, bearer: str, body: bytes, status: int) -> None:
    assert await world.post(path, body, bearer) == status
    assert world.taken == []


async def test_a_compressed_body_is_not_inflated(world: ReportSender) -> None:
    """A kilobyte could become a megabyte before anybody looks at who sent it."""
    body = gzip.compress(b'{"step": 7}')
    headers = {"Authorization": f"Signed {sign('good', PATH.encode(), body)}", "Content-Encoding": "gzip"}
    async with world.session.post(world.url + PATH, data=body, headers=headers) as answer:
        assert answer.status == 400
    assert world.taken == []


async def test_a_rank_that_reports_too_often_is_slowed_down_and_others_are_not(world: ReportSender) -> None:
    answers = [await world.post() for _ in range(int(BURST) + 1)]
    assert answers == [204] * int(BURST) + [429]
    assert await world.post("/report/default/job/0/worker/1") == 204
    await world.clock.advance(1.0)
    assert await world.post() == 204


async def test_a_successor_listens_at_the_same_place(tmp_path: Path) -> None:
    channel = Channel(lambda key, bearer: True, lambda report: None, clock=FakeClock())
    place = ListenAddress(remember=tmp_path / "port")
    async with channel.serve(place) as first:
        pass
    async with channel.serve(place) as second:
        assert second == first
        other = Channel(lambda key, bearer: True, lambda report: None, clock=FakeClock())
        async with other.serve(place) as third:
            assert third != second, "where the place is taken, another one is found"


def test_tokens_are_of_one_job_and_one_key() -> None:
    given = token.derive(b"key", "uid-1")
    assert given == token.derive(b"key", "uid-1")
    assert given != token.derive(b"key", "uid-2")
    assert given != token.derive(b"another", "uid-1")


@pytest.mark.parametrize(
    ("authorization", "is_proof"),
    [
        (f"Signed {sign('good', PATH.encode(), b'{}')}", True),
        ("Bearer good", True),  # of a program of an earlier release
        (f"Signed {sign('good', PATH.encode(), b'[]')}", False),
        (f"Signed {sign('good', b'/report/default/other/0/worker/0', b'{}')}", False),
        (f"Signed {sign('', PATH.encode(), b'{}')}", False),
        ("Signed good", False),
        ("Bearer ", False),
        ("Signed", False),
        ("Basic good", False),
        ("", False),
        ("Signed ÿ\udcff", False),
    ],
)
def test_a_proof_is_of_one_token_one_path_and_one_body(authorization: str, is_proof: bool) -> None:
    assert token.proves(authorization, "good", PATH, b"{}") is is_proof
    assert not token.proves(authorization, "", PATH, b"{}")


async def test_programs_of_an_earlier_release_are_accepted(world: ReportSender) -> None:
    assert await world.send(PATH, b'{"step": 7}', "Bearer good") == 204
    assert await world.send(PATH, b'{"step": 7}', "Bearer bad") == 401
    assert len(world.taken) == 1


# The whole controller


async def report_secret(cluster: Cluster) -> Object:
    (secret,) = (await cluster.client.list(SECRETS, "default", label_selector="paddlepaddle.org/job-name=job")).items
    return secret


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster_of(tmp_path, reports=ListenAddress()) as cluster:
        yield cluster


async def test_the_first_checkpoint_does_not_wait_for_the_time_of_grouped_reports(cluster: Cluster) -> None:
    await cluster.apply(worker=1)
    await cluster.bring_up(1)
    bearer = base64.b64decode((await report_secret(cluster))["data"]["token"]).decode()
    pod = await cluster.get(PODS, "job-worker-0")
    env = {entry["name"]: entry for entry in pod["spec"]["containers"][0]["env"]}
    url = env["PADDLECLOUD_REPORT_URL"]["value"]

    async def post(body: Object) -> None:
        content, path = json.dumps(body).encode(), urlsplit(url).path.encode()
        headers = {"Authorization": f"Signed {sign(bearer, path, content)}"}
        async with aiohttp.ClientSession() as session, session.post(url, data=content, headers=headers) as answer:
            assert answer.status == 204

    async def shown(name: str) -> Object:
        async def is_there() -> Object | None:
            status: Object = (await cluster.get(PADDLEJOBS, "job"))["status"]
            return status if status.get(name) else None

        found: Object = await eventually(is_there)
        return found

    await post({"step": 1, "totalSteps": 9})
    await shown("progress")
    await post({"checkpoint": {"path": "/ckpt", "step": 1}})
    status = await shown("checkpoint")
    waited = parse_rfc3339(status["lastReconcileTime"]) - parse_rfc3339(status["checkpoint"]["time"])
    assert waited < LATER - 2, "it was written with the reports that are grouped"


async def test_a_pods_report_shows_on_the_job(cluster: Cluster) -> None:
    await cluster.apply(worker=1)
    await cluster.bring_up(1)
    secret = await report_secret(cluster)
    bearer = base64.b64decode(secret["data"]["token"]).decode()
    pod = await cluster.get(PODS, "job-worker-0")
    assert bearer not in str(pod)
    env = {entry["name"]: entry for entry in pod["spec"]["containers"][0]["env"]}
    url = env["PADDLECLOUD_REPORT_URL"]["value"]
    async with aiohttp.ClientSession() as session:
        body = {"step": 5, "totalSteps": 10, "loss": 0.5}
        content, path = json.dumps(body).encode(), urlsplit(url).path.encode()
        for key, status in ((bearer, 204), ("guessed", 401)):
            headers = {"Authorization": f"Signed {sign(key, path, content)}"}
            async with session.post(url, data=content, headers=headers) as answer:
                assert answer.status == status
    await cluster.succeed("job-worker-0")
    job = await cluster.phase("Completed")
    assert (job["status"]["progress"]["done"], job["status"]["progress"]["loss"]) == ("5/10 (50%)", 0.5)
    assert len(cluster.writes) <= 2 * 1 + 8, cluster.writes


async def test_a_job_of_the_same_name_has_another_token(cluster: Cluster) -> None:
    await cluster.apply(worker=1)
    await cluster.bring_up(1)
    first = (await report_secret(cluster))["data"]
    await cluster.client.delete(PADDLEJOBS, "job", namespace="default", propagation="Orphan")
    await cluster.client.delete(PODS, "job-worker-0", namespace="default", grace_period=0)
    await cluster.client.delete(CONFIGMAPS, "job", namespace="default")

    async def gone() -> bool:
        return not await cluster.exists(PADDLEJOBS, "job")

    await eventually(gone)
    await cluster.apply(worker=1)

    async def replaced() -> bool:
        there = (await cluster.client.list(SECRETS, "default", label_selector="paddlepaddle.org/job-name=job")).items
        return any(secret["data"] != first for secret in there)

    await eventually(replaced)


async def test_a_successor_of_the_controller_takes_the_same_tokens(cluster: Cluster) -> None:
    await cluster.apply(worker=1)
    await cluster.bring_up(1)
    keys = (await cluster.client.list(SECRETS, "kube-system")).items
    assert [key["metadata"]["name"] for key in keys] == [token.KEY_NAME]
    await cluster.stop_controller()
    cluster.start_controller()
    await cluster.phase("Running")
    again = (await cluster.client.list(SECRETS, "kube-system")).items
    assert again == keys
