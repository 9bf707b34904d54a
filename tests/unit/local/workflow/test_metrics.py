"""Metrics of workflows and templates: what a pass gives, what Prometheus reads, and what a tenant can cost."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.metrics import Registry
from paddlecloud.local.workflow.decision.metrics import MOST_METRICS, Sample, WorkflowPlan
from paddlecloud.local.workflow.metric_series import MOST_LINES, MetricSeries
from unit.local.workflow.simulation import START, Simulation, workflow
from unit.local.workflow.validation.test_validation import judged

SPEC = """
entrypoint: main
metrics:
  prometheus:
  - {name: runs, help: Runs, labels: [{key: status, value: "{{workflow.status}}"}], counter: {value: "1"}}
  - {name: lasts, help: Time, gauge: {realtime: true, value: "{{workflow.duration}}"}}
templates:
- name: main
  steps:
  - - {name: one, template: work, arguments: {parameters: [{name: size, value: "7"}]}}
- name: work
  inputs: {parameters: [{name: size}]}
  retryStrategy: {limit: "1"}
  metrics:
    prometheus:
    - {name: ends, help: Ends, labels: [{key: code, value: "{{exitCode}}"}], counter: {value: "1"}}
    - name: size
      help: Size
      when: "{{status}} == Failed"
      histogram: {buckets: [5, 10], value: "{{inputs.parameters.size}}"}
  container: {image: busybox}
"""


def collected(simulation: Simulation) -> list[Sample]:
    """All samples of a run."""
    samples: list[Sample] = []
    carry_out = simulation.carry_out

    def listening(plan: Any) -> None:
        assert isinstance(plan, WorkflowPlan)
        samples.extend(plan.samples)
        carry_out(plan)

    simulation.carry_out = listening  # type: ignore[method-assign]
    simulation.run()
    return samples


def test_each_attempt_and_the_workflow_are_counted_once() -> None:
    samples = [each for each in collected(Simulation(workflow(SPEC), lambda pod: 3)) if each.kind != "gauge"]
    shown = [(each.name, dict(each.labels), each.value) for each in samples]
    assert shown == [
        ("ends", {"code": "3"}, 1.0),
        ("size", {}, 7.0),
        ("ends", {"code": "3"}, 1.0),
        ("size", {}, 7.0),
        ("runs", {"status": "Failed"}, 1.0),
    ]


@pytest.mark.parametrize(
    "main",
    [
        "steps: [[{name: x, template: a}], [{name: y, template: a}, {name: z, template: a, when: 1 == 2}]]",
        "dag: {tasks: [{name: x, template: a}, {name: y, template: a, depends: x}]}",
        "dag: {tasks: [{name: x, template: a, withItems: [1, 2]}]}",
    ],
)
def test_each_step_and_task_that_ran_is_counted_once(main: str) -> None:
    metric = '{name: ends, help: h, labels: [{key: status, value: "{{status}}"}], counter: {value: "1"}}'
    template = f"{{name: a, metrics: {{prometheus: [{metric}]}}, container: {{image: busybox}}}}"
    samples = collected(Simulation(workflow(f"entrypoint: main\ntemplates:\n- name: main\n  {main}\n- {template}")))
    assert [(each.name, dict(each.labels)) for each in samples] == [("ends", {"status": "Succeeded"})] * 2


def test_a_realtime_gauge_grows_until_the_workflow_is_over() -> None:
    gauges = [each for each in collected(Simulation(workflow(SPEC))) if each.name == "lasts"]
    assert gauges[0].began == START
    assert gauges[-1].began is None
    series = MetricSeries(FakeClock(START + 30))
    series.record("team", "uid", gauges[:1])
    assert 'argo_workflows_lasts{workflow_namespace="team"} 30' in rendered(series)
    series.forget_workflow("uid")
    assert "lasts" not in rendered(series)


def test_an_error_in_a_metric_is_a_condition_and_ends_nothing() -> None:
    spec = SPEC.replace('"{{exitCode}}"', '"{{outputs.parameters.none}}"').replace("help: Runs", 'help: ""')
    simulation = Simulation(workflow(spec)).run()
    assert simulation.status["phase"] == "Succeeded"
    (condition,) = [each for each in simulation.status["conditions"] if each["type"] == "MetricsError"]
    assert "metric 'runs'" in condition["message"]


def rendered(series: MetricSeries) -> str:
    registry = Registry()
    registry.sources.append(series.metrics)
    return registry.render()


def counter(name: str, label: str = "", **more: Any) -> Sample:
    return Sample(**{"kind": "counter", "name": name, "help": "h", "labels": (("l", label),), "value": 1.0, **more})


def test_series_of_two_namespaces_do_not_meet() -> None:
    series = MetricSeries(FakeClock(START))
    series.record("one", "u", [counter("same"), counter("same")])
    series.record("two", "u", [counter("same", kind="gauge", value=5.0)])
    text = rendered(series)
    assert 'argo_workflows_same{workflow_namespace="one",l=""} 2' in text
    assert 'argo_workflows_same{workflow_namespace="two",l=""} 5' in text
    assert text.count("# TYPE argo_workflows_same untyped") == 1
    series.forget_namespace("one")
    assert 'workflow_namespace="one"' not in rendered(series)


def test_a_histogram_has_cumulated_buckets() -> None:
    series = MetricSeries(FakeClock(START))
    for value in (1.0, 7.0, 70.0):
        series.record("n", "u", [counter("h", kind="histogram", value=value, buckets=(5.0, 10.0), labels=())])
    lines = [line for line in rendered(series).splitlines() if not line.startswith("#")]
    assert [line.rpartition(" ")[2] for line in lines] == ["1", "2", "3", "78", "3"]


def test_one_tenant_does_not_fill_the_memory() -> None:
    series = MetricSeries(FakeClock(START))
    series.record("greedy", "u", (counter("m", str(number)) for number in range(MOST_LINES + 50)))
    series.record("other", "u", [counter("m")])
    text = rendered(series)
    assert text.count('workflow_namespace="greedy",l=') == MOST_LINES
    assert 'paddlecloud_workflow_metrics_dropped_total{workflow_namespace="greedy"} 50' in text
    assert 'argo_workflows_m{workflow_namespace="other",l=""} 1' in text


@pytest.mark.parametrize(
    ("metric", "field"),
    [
        ({"name": "a-b", "counter": {"value": "1"}}, ".name"),
        ({"name": "a", "counter": {}}, ".counter.value"),
        ({"name": "a"}, ""),
        ({"name": "a", "counter": {"value": "1"}, "gauge": {"value": "1"}}, ""),
        ({"name": "a", "counter": {"value": "1"}, "labels": [{"key": "a b"}]}, ".labels"),
        ({"name": "a", "counter": {"value": "1"}, "labels": [{"key": "workflow_namespace"}]}, ".labels"),
        ({"name": "a", "gauge": {"value": "1", "operation": "Mul"}}, ".gauge.operation"),
        ({"name": "a", "histogram": {"value": "1", "buckets": ["x"]}}, ".histogram.buckets"),
        ({"name": "a", "gauge": {"value": "{{resourcesDuration.cpu}}", "realtime": True}}, ".gauge.value"),
    ],
)
def test_a_metric_that_says_nothing_is_refused(metric: dict[str, Any], field: str) -> None:
    template = {"name": "main", "container": {"image": "x"}, "metrics": {"prometheus": [metric]}}
    path = f"metrics.prometheus[0]{field}"
    assert judged({"entrypoint": "main", "templates": [template]}) == [f"spec.templates[0].{path}"]
    plain = {"name": "main", "container": {"image": "x"}}
    assert judged({"entrypoint": "main", "templates": [plain], "metrics": template["metrics"]}) == [f"spec.{path}"]


@pytest.mark.parametrize(
    "metric",
    [
        {"name": 'x{workflow_namespace="other"} 7\nforged', "help": "h", "gauge": {"value": "5"}},
        {
            "name": "x",
            "help": "h",
            "gauge": {"value": "5"},
            "labels": [{"key": "workflow_namespace", "value": "other"}],
        },
        {"name": "x", "help": "h", "gauge": {"value": "5"}, "labels": [{"key": 'a="b"} 5\nforged{c', "value": "d"}]},
    ],
    ids=["name", "label of the platform", "label"],
)
def test_what_nobody_judged_forges_no_series(metric: dict[str, Any]) -> None:
    """Users write the status of a workflow, and with it the spec that it is carried out by."""
    made = workflow("{workflowTemplateRef: {name: t}}")
    stored = {"entrypoint": "m", "templates": [{"name": "m", "container": {"image": "busybox"}}]}
    made["status"] = {"storedWorkflowTemplateSpec": {**stored, "metrics": {"prometheus": [metric]}}}
    simulation = Simulation(made)
    assert collected(simulation) == []
    conditions = {each["type"]: each.get("message", "") for each in simulation.workflow["status"]["conditions"]}
    assert "metric 'x" in conditions["MetricsError"]


def test_metrics_that_nobody_judged_are_not_many() -> None:
    made = workflow("{workflowTemplateRef: {name: t}}")
    metrics = [{"name": f"m{at}", "help": "h", "gauge": {"value": "5"}} for at in range(MOST_METRICS + 50)]
    stored = {"entrypoint": "m", "templates": [{"name": "m", "container": {"image": "busybox"}}]}
    made["status"] = {"storedWorkflowTemplateSpec": {**stored, "metrics": {"prometheus": metrics}}}
    assert len(collected(Simulation(made))) == MOST_METRICS
