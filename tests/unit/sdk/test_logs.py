"""Times of log lines as runtimes write them, and lines of several pods in the order of their moments."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import pytest

from paddlecloud.kube.client import Client
from paddlecloud.kube.stdlib import drive_iter
from paddlecloud.kube.transport import JSON, Response
from paddlecloud.sdk.logs import LogOptions, merged, order, read
from paddlecloud.sdk.members import Member, member


class Logs:
    """A transport that knows logs alone; what was asked is kept."""

    def __init__(self, **logs: list[str]) -> None:
        self._logs = logs
        self.queries: list[Mapping[str, str]] = []

    async def request(self, method: str, path: str, **_: object) -> Response:
        raise AssertionError("logs are streams")

    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON
    ) -> AsyncIterator[bytes]:
        self.queries.append(query or {})
        data = "".join(f"{line}\n" for line in self._logs[path.split("/")[-2]]).encode()
        for begin in range(0, len(data), 7):  # cut anywhere
            yield data[begin : begin + 7]

    async def close(self) -> None: ...


def pod(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "x"}, "spec": {"containers": [{"name": "c"}]}}


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000001Z"),
        ("2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.500001Z"),
        ("2026-01-01T00:00:00.49Z", "2026-01-01T00:00:00.5Z"),
        ("2026-01-01T08:00:00.1+08:00", "2026-01-01T00:00:00.2Z"),
        ("2026-01-01T00:00:00.1Z", "2025-12-31T19:00:00.2-05:00"),
    ],
)
def test_times_sort_as_moments(earlier: str, later: str) -> None:
    assert order(earlier) < order(later)


def test_equal_moments_are_equal() -> None:
    assert order("2026-01-01T08:00:00.1+08:00") == order("2026-01-01T00:00:00.100Z")


def test_lines_of_several_pods_come_in_order() -> None:
    client = Client(
        Logs(
            a=["2026-01-01T00:00:01Z a1", "2026-01-01T00:00:03.5Z a2"],
            b=["2026-01-01T00:00:02Z b1", "2026-01-01T00:00:03.25Z b2", "2026-01-01T00:00:09Z b3"],
            c=[],
        )
    )
    lines = list(drive_iter(merged(client, [member(pod(name)) for name in "abc"], LogOptions())))
    assert [line.text for line in lines] == ["a1", "b1", "b2", "a2", "b3"]


def test_the_last_lines_of_a_rank_are_counted_over_all_its_runs() -> None:
    lives = {
        name: [f"2026-01-01T00:00:{second:02}Z {name}{second}" for second in seconds]
        for name, seconds in {"first": (1, 2), "second": (3, 4), "other": (1, 9)}.items()
    }
    ranks = {"first": 0, "second": 0, "other": 1}
    found = [Member(pod(name), "worker", rank) for name, rank in ranks.items()]
    lines = drive_iter(merged(Client(Logs(**lives)), found, LogOptions(tail=2)))
    assert [line.text for line in lines] == ["other1", "second3", "second4", "other9"]


def test_a_reader_that_resumes_repeats_nothing() -> None:
    logs = Logs(a=["2026-01-01T00:00:01.1Z one", "2026-01-01T00:00:01.11Z two", "2026-01-01T00:00:02Z three"])
    lines = drive_iter(read(Client(logs), member(pod("a")), LogOptions(tail=5), after="2026-01-01T00:00:01.1Z"))
    assert [line.text for line in lines] == ["two", "three"]
    assert logs.queries[0]["sinceTime"] == "2026-01-01T00:00:01Z"
    assert "tailLines" not in logs.queries[0], "what was asked for in the beginning does not hold for the rest"


def test_lines_without_times_are_kept() -> None:
    lines = drive_iter(read(Client(Logs(a=["plain text", "2026-01-01T00:00:02Z x"])), member(pod("a")), LogOptions()))
    assert [(line.time, line.text) for line in lines] == [("", "plain text"), ("2026-01-01T00:00:02Z", "x")]
