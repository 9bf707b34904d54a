"""What gateways report becomes numbers for roll-outs and metrics; a start from zero is reported stage by stage."""

from __future__ import annotations

import asyncio
from typing import Any

from paddlecloud.kube.metrics import Registry
from paddlecloud.local.knative.coldstart import ColdStarts, stages_of
from paddlecloud.local.knative.gateway.stats import BOUNDS, Stats
from paddlecloud.local.knative.measures import Measures, percentile


def report(codes: dict[int, int], seconds: float = 0.004) -> dict[str, Any]:
    stats = Stats(0.0)
    for code, count in codes.items():
        for _ in range(count):
            stats.enter(0.0)
            stats.leave(seconds, code, seconds)
    found = stats.report(1.0)
    assert found is not None
    return {"ns/r": found}


def test_errors_and_times_of_the_last_minute() -> None:
    measures = Measures(Registry())
    measures.receive(report({200: 90, 404: 5, 500: 5}), 100.0)
    assert measures.of("ns/r") == {"requests": 100, "errorPercent": 5.0, "p95Milliseconds": 5.0}
    measures.receive(report({200: 100}, seconds=0.2), 161.0)
    assert measures.of("ns/r") == {"requests": 100, "errorPercent": 0.0, "p95Milliseconds": 250.0}


def test_a_revision_that_got_no_requests_for_a_minute_has_no_figures_any_more() -> None:
    measures = Measures(Registry())
    measures.receive(report({500: 100}), 100.0)
    assert measures.expired(159.0) == []
    assert (measures.expired(161.0), measures.expired(162.0)) == (["ns/r"], [])
    assert measures.of("ns/r") is None


def test_reports_of_several_gateways_add_up_in_the_metrics() -> None:
    registry = Registry()
    measures = Measures(registry)
    for _ in range(2):
        measures.receive(report({200: 3, 503: 1}), 1.0)
    text = registry.render()
    assert 'paddlecloud_gateway_requests_total{revision="ns/r",code="200"} 6' in text
    assert 'paddlecloud_gateway_request_seconds_count{revision="ns/r"} 8' in text


def test_numbers_are_written_down_every_other_second_at_most() -> None:
    measures = Measures(Registry())
    measures.receive(report({200: 1}), 10.0)
    assert [measures.due("ns/r", now) for now in (10.0, 11.0, 12.0, 12.5)] == [True, False, True, False]


def test_a_percentile_is_the_upper_end_of_its_bucket() -> None:
    latencies = [0] * (len(BOUNDS) + 1)
    latencies[0], latencies[4] = 94, 6
    assert percentile(latencies, 0.5) == BOUNDS[0]
    assert percentile(latencies, 0.95) == BOUNDS[4]
    assert percentile([0] * (len(BOUNDS) + 1), 0.95) == 0.0


def pod(phase: str, *, ready: bool = False, uid: str = "p") -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {"metadata": {"uid": uid}, "status": {"phase": phase, "conditions": conditions}}


def test_a_start_from_zero_stage_by_stage() -> None:
    starts = ColdStarts(Registry())
    starts.woken("ns/r", 10.0)
    starts.woken("ns/r", 10.5)
    assert starts.pod_changed("ns/r", pod("Pending"), 10.1) is None
    assert starts.pod_changed("ns/r", pod("Running", ready=True, uid="another"), 10.15) is None
    assert starts.pod_changed("ns/r", pod("Running"), 10.2) is None
    assert starts.pod_changed("ns/r", pod("Running", ready=True), 10.5) is not None
    assert starts.of("ns/r") == {"queue": 100, "spawn": 100, "load": 300, "total": 500}
    starts.learned("ns/r", {"import": 0.01, "load": 0.2, "warmUp": 0.05, "fetch": 9.0})
    assert starts.of("ns/r") == {"queue": 100, "spawn": 100, "imports": 10, "load": 200, "warmup": 50, "total": 500}


def test_a_pod_nobody_waited_for_is_no_cold_start() -> None:
    starts = ColdStarts(Registry())
    assert starts.pod_changed("ns/r", pod("Running", ready=True), 1.0) is None
    assert starts.of("ns/r") is None


async def test_a_program_that_reports_its_stages_is_read_and_one_that_does_not_is_left_alone() -> None:
    text = b'# HELP x\nserver_start_seconds{stage="import"} 0.25\nserver_start_seconds{stage="load"} 1e-3\nother 4\n'

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + text)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert await stages_of("127.0.0.1", port) == {"import": 0.25, "load": 0.001}
    server.close()
    assert await stages_of("127.0.0.1", 1) == {}
