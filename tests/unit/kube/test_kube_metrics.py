"""Metrics in the text Prometheus reads, and logs a machine can."""

from __future__ import annotations

import json
import logging
import sys

import pytest
from kube_mini import MiniServer

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import NotFound, Unreachable
from paddlecloud.kube.logs import JsonFormatter, configure
from paddlecloud.kube.metered import MeteredTransport
from paddlecloud.kube.metrics import ControllerMetrics, Registry
from paddlecloud.kube.resource import PODS


def test_metrics_are_written_as_prometheus_reads_them() -> None:
    registry = Registry()
    requests = registry.counter("requests_total", "How many\nrequests", ("code",))
    requests.inc("200")
    requests.inc("200", by=2)
    requests.inc('a"b\\c\nd')
    registry.gauge("temperature", "Now").set(21.5)
    registry.gauge("computed", "At the moment of asking", source=lambda: {(): 7})
    latency = registry.histogram("latency_seconds", "How long", ("verb",), buckets=(0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 3):
        latency.observe(value, "get")
    assert registry.render() == (
        "# HELP requests_total How many\\nrequests\n"
        "# TYPE requests_total counter\n"
        'requests_total{code="200"} 3\n'
        'requests_total{code="a\\"b\\\\c\\nd"} 1\n'
        "# HELP temperature Now\n"
        "# TYPE temperature gauge\n"
        "temperature 21.5\n"
        "# HELP computed At the moment of asking\n"
        "# TYPE computed gauge\n"
        "computed 7\n"
        "# HELP latency_seconds How long\n"
        "# TYPE latency_seconds histogram\n"
        'latency_seconds_bucket{verb="get",le="0.1"} 2\n'
        'latency_seconds_bucket{verb="get",le="1"} 3\n'
        'latency_seconds_bucket{verb="get",le="+Inf"} 4\n'
        'latency_seconds_sum{verb="get"} 3.65\n'
        'latency_seconds_count{verb="get"} 4\n'
    )


def test_a_name_is_one_metric_and_labels_are_checked() -> None:
    registry = Registry()
    counter = registry.counter("x", "", ("a",))
    assert registry.counter("x", "", ("a",)) is counter
    with pytest.raises(ValueError, match="exists"):
        registry.gauge("x", "", ("a",))
    with pytest.raises(ValueError, match="labels"):
        counter.inc()


def test_controllers_are_counted_by_how_their_runs_end() -> None:
    registry = Registry()
    hooks = ControllerMetrics(registry)
    hooks.reconciled("job", "done", 0.01)
    hooks.reconciled("job", "error", 0.02)
    hooks.depth("job", 3)
    text = registry.render()
    assert 'paddlecloud_reconcile_total{controller="job",result="error"} 1' in text
    assert 'paddlecloud_reconcile_seconds_count{controller="job"} 2' in text
    assert 'paddlecloud_queue_depth{controller="job"} 3' in text


async def test_requests_are_counted_by_their_answer() -> None:
    registry, server = Registry(), MiniServer()
    client = Client(MeteredTransport(server, registry))
    await client.create(PODS, {"metadata": {"name": "p", "namespace": "ns"}})
    with pytest.raises(NotFound):
        await client.get(PODS, "none", "ns")
    server.refuse = lambda method, path: Unreachable("gone")
    with pytest.raises(Unreachable):
        await client.get(PODS, "p", "ns")
    counter = registry.counter("paddlecloud_api_requests_total", "", ("method", "code"))
    assert [counter.value(*labels) for labels in (("POST", "200"), ("GET", "404"), ("GET", "0"))] == [1, 1, 1]


def test_json_logs_are_one_object_a_line_with_extra_fields_and_errors() -> None:
    try:
        raise ValueError("bad\nvalue")
    except ValueError:
        record = logging.getLogger("x").makeRecord(
            "x", logging.WARNING, __file__, 1, "job %s", ("a",), sys.exc_info(), extra={"key": "ns/a", "odd": object}
        )
    line = JsonFormatter().format(record)
    assert "\n" not in line
    entry = json.loads(line)
    assert (entry["level"], entry["logger"], entry["message"], entry["key"]) == ("warning", "x", "job a", "ns/a")
    assert "ValueError: bad" in entry["exception"]
    assert entry["time"].endswith("Z")


@pytest.mark.parametrize("form", ["text", "json"])
def test_logs_go_to_stderr_in_the_form_asked_for(
    form: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    for handler in before:  # force=True closes and drops what pytest installed
        root.removeHandler(handler)
    try:
        configure(form, level="warning")  # type: ignore[arg-type]
        logging.getLogger("x").warning("hello")
        logging.getLogger("x").info("not this")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    out, err = capsys.readouterr()
    assert out == ""
    assert "hello" in err
    assert "not this" not in err
    assert (err.startswith("{")) == (form == "json")
