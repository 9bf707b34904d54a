"""What a template gave before is used again; and other features of single templates."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import Object
from paddlecloud.local.store.record import ObjectAddress, Record
from paddlecloud.local.workflow.decision.memoization import save
from paddlecloud.local.workflow.observed import same_in_one_pass
from unit.local.workflow.simulation import START, Simulation, workflow
from unit.local.workflow.validation.test_validation import judged, spec

MEMO = """
    entrypoint: main
    templates:
    - name: main
      memoize: {key: "k-{{workflow.name}}", maxAge: 1h, cache: {configMap: {name: results}}}
      outputs: {parameters: [{name: made, valueFrom: {path: /tmp/made}}]}
      container: {image: busybox, command: [sh]}
"""
LABELS = {"workflows.argoproj.io/configmap-type": "Cache"}


def cache(outputs: Any, age: float = 0.0, labels: Any = LABELS) -> Object:
    made = rfc3339(START - age)
    entry = {"nodeID": "x", "outputs": outputs, "creationTimestamp": made, "lastHitTimestamp": made}
    return {"metadata": {"name": "results", "labels": labels}, "data": {"k-wf": json.dumps(entry)}}


def run(config_map: Object | None, text: str = MEMO, **observed: Any) -> tuple[Simulation, list[Object], list[Object]]:
    """The workflow after its end, the ConfigMaps that were created, and what was patched into the one there is."""
    created: list[Object] = []
    patched: list[Object] = []
    observed["cache"] = lambda name: config_map
    simulation = Simulation(workflow(text), lambda pod: {"parameters": {"made": "gold"}}, **observed)
    for _ in range(10):
        plan = simulation.decided()
        created += [each for each in plan.create if each["kind"] == "ConfigMap"]
        patched += [each.patch for each in plan.patch if each.resource.kind == "ConfigMap"]
        plan.create = [each for each in plan.create if each["kind"] == "Pod"]
        plan.patch = [each for each in plan.patch if each.resource.kind == "Workflow"]
        simulation.carry_out(plan)
        for pod in plan.create:
            simulation.finish(pod)
    return simulation, created, patched


def test_given_no_entry_then_the_step_runs_and_its_outputs_are_kept_as_argo_keeps_them() -> None:
    done, created, patched = run(None)
    node = done.nodes["wf"]
    assert node["memoizationStatus"] == {"hit": False, "key": "k-wf", "cacheName": "results"}
    (made,) = created
    assert (made["metadata"]["name"], made["metadata"]["labels"], patched) == ("results", LABELS, [])
    entry = json.loads(made["data"]["k-wf"])
    assert (entry["nodeID"], entry["outputs"]["parameters"][0]["value"]) == ("wf", "gold")
    assert set(entry) == {"nodeID", "outputs", "creationTimestamp", "lastHitTimestamp"}


def test_given_an_entry_then_nothing_runs_and_its_outputs_are_taken() -> None:
    outputs = {"parameters": [{"name": "made", "value": "old"}]}
    done, created, patched = run(cache(outputs))
    node = done.nodes["wf"]
    assert (node["phase"], node["outputs"], node["memoizationStatus"]["hit"]) == ("Succeeded", outputs, True)
    assert (done.created, created, len(patched)) == ([], [], 1)


def test_given_an_entry_that_is_too_old_then_the_step_runs() -> None:
    done, _, patched = run(cache({}, age=3601))
    assert len(done.created) == 1
    assert json.loads(patched[0]["data"]["k-wf"])["nodeID"] == "wf"


REFERENCE = {"name": "data", "type": {}, "uri": "s3://b/k", "key": "k", "metadata": {}, "digest": "sha256:1"}
WITHOUT_CONTENT = {key: value for key, value in REFERENCE.items() if key != "digest"}
STORE = {"endpoint": "s3:9000", "bucket": "b"}


def artifact(**place: Any) -> Object:
    return {"artifacts": [{"name": "data", "path": "/tmp/data", "s3": {"key": "k", **place}}]}


def parameter(value: Any, name: str = "artifact-data") -> Object:
    return {"parameters": [{"name": name, "value": value if isinstance(value, str) else json.dumps(value)}]}


@pytest.mark.parametrize(
    ("outputs", "asked"),
    [
        (artifact(), True),
        (artifact(**STORE), False),
        ({"artifacts": [{"name": "main-logs", "s3": {"key": "k"}}]}, False),
        ({"artifacts": [{"name": "text", "raw": {"data": "k"}}]}, False),
        (parameter(REFERENCE), True),
        (parameter([[REFERENCE], []]), True),
        (parameter(WITHOUT_CONTENT), False),
        (parameter(REFERENCE, name="config"), False),
        (parameter("{k"), False),
        (parameter("[" * 100_000), False),
        ({**artifact(**STORE), **parameter(REFERENCE)}, False),
        (parameter({**REFERENCE, "key": 3}), False),
    ],
)
def test_an_answer_is_taken_only_while_the_artifacts_that_it_names_are_stored(outputs: Object, asked: bool) -> None:
    for is_there in (True, False):
        keys: list[str] = []

        def is_stored(key: str, is_there: bool = is_there, keys: list[str] = keys) -> bool:
            keys.append(key)
            return is_there

        done, _, patched = run(cache(outputs), is_stored=is_stored)
        hit = is_there or not asked
        assert (done.status["phase"], set(keys)) == ("Succeeded", {"k"} if asked else set())
        assert (done.nodes["wf"]["memoizationStatus"]["hit"], done.created) == (hit, [] if hit else ["wf"])
        (entry,) = (json.loads(each["data"]["k-wf"]) for each in patched)
        assert entry["outputs"] == outputs if hit else entry["outputs"]["parameters"][0]["value"] == "gold"


def test_references_of_a_workflow_that_has_its_artifacts_in_s3_are_not_looked_for() -> None:
    simulation = Simulation(workflow(MEMO), cache=lambda name: cache(parameter(REFERENCE)), is_stored=lambda key: False)
    simulation.workflow["status"] = {"artifactRepositoryRef": {"artifactRepository": {"s3": STORE}}}
    assert simulation.decided().patch[-1].patch["status"]["nodes"]["wf"]["memoizationStatus"]["hit"]


def test_given_entries_with_very_many_artifacts_then_a_pass_looks_for_some_of_them_alone() -> None:
    keys: list[str] = []

    def is_stored(key: str) -> bool:
        keys.append(key)
        return True

    many = {"artifacts": [{"name": "a", "s3": {"key": f"{at}"}} for at in range(1000)]}
    simulation = Simulation(workflow(LOOP), cache=lambda name: cache(many), is_stored=is_stored)
    plan = simulation.decided()
    assert (len(keys), plan.after) == (5000, 0.0), "the other steps of the loop are for the next pass"
    keys.clear()
    done, _, _ = run(cache({"artifacts": [*many["artifacts"], *artifact()["artifacts"]]}), is_stored=is_stored)
    assert (done.created, keys) == (["wf"], []), "it is a miss"


@pytest.mark.parametrize(
    ("config_map", "message"),
    [
        (cache({}, labels={}), "needs the label"),
        ({"metadata": {"labels": LABELS}, "data": {"k-wf": "{"}}, "malformed cache entry"),
    ],
)
def test_a_config_map_that_is_no_cache_ends_the_step(config_map: Object, message: str) -> None:
    done, created, patched = run(config_map)
    assert (done.status["phase"], created, patched) == ("Error", [], [])
    assert message in done.status["message"]


def test_a_cache_that_is_full_is_left_as_it_is() -> None:
    full = cache({})
    full["data"] = {"other": "x" * 900 * 1024}
    done, created, patched = run(full)
    assert (done.status["phase"], created, patched) == ("Succeeded", [], [])


def test_outputs_that_are_supplied_wait_on_the_node_and_have_their_default_when_time_is_over() -> None:
    text = """
        entrypoint: main
        templates:
        - name: main
          steps:
          - - {name: ask, template: ask}
          - - name: say
              template: say
              arguments: {parameters: [{name: text, value: "{{steps.ask.outputs.parameters.ok}}"}]}
        - name: ask
          suspend: {duration: 10s}
          inputs: {parameters: [{name: ok, default: "YES", enum: ["YES", "NO"]}]}
          outputs: {parameters: [{name: ok, valueFrom: {supplied: {}}}]}
        - name: say
          inputs: {parameters: [{name: text}]}
          container: {image: busybox, args: ["{{inputs.parameters.text}}"]}
    """
    for value, said in ((None, "YES"), ("NO", "NO")):
        simulation = Simulation(workflow(text))
        simulation.step()
        (parameter,) = simulation.nodes["ask"]["outputs"]["parameters"]
        assert parameter == {"name": "ok", "valueFrom": {"supplied": {}, "default": "YES"}}
        if value is not None:
            parameter["value"] = value
        simulation.run()
        (pod,) = simulation.pods.values()
        assert pod["spec"]["containers"][0]["args"] == [said]


def test_a_timeout_is_a_deadline_of_the_pod() -> None:
    text = "entrypoint: a\ntemplates: [{name: a, timeout: 1m30s, container: {image: busybox}}]"
    (pod,) = Simulation(workflow(text)).step()
    assert pod["spec"]["activeDeadlineSeconds"] == 90


def test_with_fail_fast_nothing_more_begins_after_a_failure() -> None:
    text = """
        entrypoint: main
        templates:
        - {name: main, failFast: true, parallelism: 1, steps: [[{name: a, template: run, withSequence: {count: 5}}]]}
        - {name: run, container: {image: busybox}}
    """
    done = Simulation(workflow(text), lambda pod: 1).run()
    assert (done.status["phase"], len(done.created)) == ("Failed", 1)
    assert done.status["message"] == "template has failed or errored children and failFast enabled"


def test_workflow_metadata_is_written_when_it_begins() -> None:
    text = """
        entrypoint: a
        arguments: {parameters: [{name: team, value: blue}]}
        workflowMetadata:
          labels: {fixed: "yes"}
          annotations: {note: hello}
          labelsFrom: {team: {expression: workflow.parameters.team}}
        templates: [{name: a, container: {image: busybox}}]
    """
    simulation = Simulation(workflow(text))
    plan = simulation.decided()
    metadata = plan.patch[0].patch["metadata"]
    assert {"fixed": "yes", "team": "blue"}.items() <= metadata["labels"].items()
    assert metadata["annotations"]["note"] == "hello"
    bad = Simulation(workflow(text.replace("workflow.parameters.team", "'no label!'"))).run()
    assert bad.status["phase"] == "Error"


def test_what_is_refused() -> None:
    def fields(memoize: Any) -> list[str]:
        return judged(spec({"container": {"image": "x"}, "memoize": memoize}))

    assert fields({"key": "a", "cache": {"configMap": {"name": "b"}}}) == []
    for wrong in ({}, 3, {"cache": 3}, {"cache": {"configMap": {}}}):
        assert fields(wrong) == ["spec.templates[0].memoize.cache.configMap.name"]
    assert fields({"cache": {"configMap": {"name": "b"}}}) == ["spec.templates[0].memoize.key"]


LOOP = """
    entrypoint: main
    templates:
    - {name: main, steps: [[{name: a, template: step, withSequence: {count: 200}}]]}
    - name: step
      memoize: {key: k-wf, cache: {configMap: {name: results}}}
      suspend: {}
"""


def test_an_entry_of_few_bytes_does_not_become_the_outputs_of_hundreds_of_nodes_at_once() -> None:
    entry = cache({"x": [[]] * 100_000})
    simulation = Simulation(workflow(LOOP), cache=lambda name: entry)
    tracemalloc.start()
    try:
        plan = simulation.decided()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 300_000_000
    assert plan.patch[0].patch["status"]["message"] == "compressed nodes have more than 1,000,000 values"


def test_given_a_status_that_names_a_large_entry_very_often_then_it_is_not_written_as_often() -> None:
    entry = cache({"x": "x" * 800_000})
    named = {"type": "Suspend", "phase": "Running", "startedAt": "2026-09-21T14:13:20Z", "boundaryID": "wf"}
    memo = {"hit": True, "key": "k-wf", "cacheName": "results"}
    ended = {
        f"n{at}": {**named, "id": f"n{at}", "name": f"n{at}", "phase": "Succeeded", "memoizationStatus": memo}
        for at in range(300)
    }
    plan = Plan()
    save(plan, "default", ended.values(), {}, lambda name: entry, START)
    assert sum(len(patch.patch["data"]["k-wf"]) for patch in plan.patch) < 40_000_000


def test_given_a_cache_that_others_write_meanwhile_then_one_pass_reads_one_version_of_it() -> None:
    address = ObjectAddress("/configmaps", "ns", "results")
    versions = iter([Record(address, 1, b'{"data": {"k": "first"}}'), Record(address, 2, b'{"data": {"k": "second"}}')])
    config_map = same_in_one_pass(lambda name: next(versions) if name == "results" else None)
    first, second = config_map("results"), config_map("results")
    assert first == second == {"data": {"k": "first"}}
    assert first is not second, "callers may change what they get"
    assert config_map("other") is None
