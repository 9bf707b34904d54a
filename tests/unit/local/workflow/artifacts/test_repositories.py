"""Which repository artifacts and logs of a workflow go to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.artifacts.collector import Collector
from paddlecloud.local.workflow.artifacts.repository import Repository
from paddlecloud.local.workflow.decision.outputs import orders_of
from unit.local.workflow.simulation import Simulation, workflow
from unit.local.workflow.validation.test_validation import judged

S3 = "s3: {bucket: b, endpoint: 'minio:9000', insecure: true, accessKeySecret: {name: keys, key: access}}"
MAKES = """
entrypoint: main
%s
templates:
- name: main
  %s
  container: {image: busybox, command: [make]}
  outputs: {artifacts: [{name: out, path: /out}]}
"""
CONFIG_MAP = {
    "metadata": {"annotations": {"workflows.argoproj.io/default-artifact-repository": "usual"}},
    "data": {
        "usual": S3,
        "dated": S3.replace("{bucket", "{keyFormat: 'runs/{{workflow.name}}/{{workflow.parameters.day}}', bucket"),
        "cloud": "gcs: {bucket: b}",
        "logged": f"archiveLogs: true\n{S3}",
        "empty": "",
        "aliases": "a: &a [1]\ns3: *a",
    },
}


def run(spec: str = "", template: str = "", config_map: Object | None = None) -> Simulation:
    def of_name(name: str) -> Object | None:
        return config_map if name == "artifact-repositories" else None

    return Simulation(workflow(MAKES % (spec, template)), cache=of_name)


def kept(simulation: Simulation) -> dict[str, Any]:
    """By the name of an artifact: the order for it."""
    (pod,) = simulation.step()
    return {each["name"]: each for each in orders_of(pod)["artifacts"]}


def test_without_a_configmap_artifacts_go_to_the_built_in_repository() -> None:
    simulation = run()
    assert kept(simulation)["out"]["key"] == "wf/wf/out.tgz"
    assert simulation.status["artifactRepositoryRef"]["default"] is True


def test_the_configmap_of_the_namespace_has_a_default() -> None:
    simulation = run(config_map=CONFIG_MAP)
    place = kept(simulation)["out"]["s3"]
    assert {key: place[key] for key in ("bucket", "endpoint", "key")} == {
        "bucket": "b", "endpoint": "minio:9000", "key": "wf/wf/out.tgz",
    }  # fmt: skip
    (pod,) = simulation.pods.values()
    (credential,) = [each for each in pod["spec"]["containers"][0]["env"] if each["name"] == place["access"]]
    assert credential["valueFrom"] == {"secretKeyRef": {"name": "keys", "key": "access"}}


def test_a_workflow_names_a_repository_and_keys_have_its_format() -> None:
    arguments = "arguments: {parameters: [{name: day, value: monday}]}"
    simulation = run(f"artifactRepositoryRef: {{key: dated}}\n{arguments}", config_map=CONFIG_MAP)
    assert kept(simulation)["out"]["s3"]["key"] == "runs/wf/monday/out.tgz"


def test_a_repository_does_not_change_while_the_workflow_runs() -> None:
    simulation = run(config_map=CONFIG_MAP)
    simulation.step()
    found = simulation.status["artifactRepositoryRef"]
    simulation._observed = {"cache": lambda name: None}
    simulation.step()
    assert simulation.status["artifactRepositoryRef"] == found


@pytest.mark.parametrize("reference", ["{key: none}", "{configMap: none, key: usual}", "{configMap: none}"])
def test_a_repository_that_there_is_not_ends_the_workflow(reference: str) -> None:
    simulation = run(f"artifactRepositoryRef: {reference}", config_map=CONFIG_MAP)
    simulation.step()
    assert simulation.status["phase"] == "Error"
    assert "failed to resolve artifact repository" in simulation.status["message"]


@pytest.mark.parametrize(("key", "why"), [("cloud", "gcs"), ("empty", "key unsupported"), ("aliases", "aliases")])
def test_a_repository_that_is_not_served_is_named_by_what_needs_it(key: str, why: str) -> None:
    simulation = run(f"artifactRepositoryRef: {{key: {key}}}", config_map=CONFIG_MAP)
    simulation.run()
    assert simulation.status["phase"] == "Error"
    assert why in simulation.status["message"]


def test_a_template_has_a_location_of_its_own() -> None:
    own = f"archiveLocation: {{{S3.replace('{bucket: b', '{key: mine, bucket: own')}}}"
    place = kept(run(template=own, config_map=CONFIG_MAP))["out"]["s3"]
    assert (place["bucket"], place["key"]) == ("own", "mine/out.tgz")


@pytest.mark.parametrize(
    ("spec", "template", "archived"),
    [
        ("", "", False),
        ("archiveLogs: true", "", True),
        ("", "archiveLocation: {archiveLogs: true}", True),
        ("archiveLogs: true", "archiveLocation: {archiveLogs: false}", False),
        ("artifactRepositoryRef: {key: logged}", "archiveLocation: {archiveLogs: false}", True),
    ],
)
def test_logs_are_archived_where_repository_template_or_workflow_say_so(
    spec: str, template: str, archived: bool
) -> None:
    assert ("main-logs" in kept(run(spec, template, CONFIG_MAP))) == archived


def test_the_log_of_a_container_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    """It wrote no report; its log is there as far as it came."""
    simulation = run("archiveLogs: true")
    (pod,) = simulation.step()
    simulation.finish(pod)
    pod["status"]["containerStatuses"][0]["state"]["terminated"] |= {"exitCode": 137, "message": ""}
    pod["status"]["phase"] = "Failed"
    repository = Repository(tmp_path)
    (repository.outputs_of("default", pod["metadata"]["uid"]) / "1").write_text("as far as it came")
    reports = Collector(repository).collect(simulation.workflow, simulation.pods)
    simulation.carry_out(simulation.decided(reports=reports))
    (log,) = simulation.nodes["wf"]["outputs"]["artifacts"]
    assert (log["name"], log["s3"]) == ("main-logs", {"key": "wf/wf/main.log"})
    found = repository.opened("default", "wf/wf/main.log")
    assert found is not None
    with found:
        assert found.read() == b"as far as it came"


def test_each_container_of_a_set_has_a_log() -> None:
    spec = """
entrypoint: main
archiveLogs: true
templates:
- name: main
  containerSet:
    containers:
    - {name: a, image: busybox, command: [a]}
    - {name: main, image: busybox, command: [b]}
"""
    (pod,) = Simulation(workflow(spec)).step()
    orders = {each["name"]: json.loads(each["env"][-1]["value"]) for each in pod["spec"]["containers"]}
    assert [each["name"] for each in orders["main"]["artifacts"]] == ["a-logs", "main-logs"]
    assert (orders["a"]["log"], orders["main"]["log"]) == ({"number": 0}, {"number": 1})


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ({"archiveLocation": {"gcs": {"bucket": "b"}}}, "archiveLocation.gcs"),
        ({"archiveLocation": {"s3": {"kmsKeyId": "x"}}}, "archiveLocation.s3.kmsKeyId"),
        ({"archiveLocation": {"archiveLogs": "yes"}}, "archiveLocation.archiveLogs"),
        ({"archiveLocation": 3}, "archiveLocation"),
    ],
)
def test_an_archive_location_that_is_not_served_is_refused(template: dict[str, Any], field: str) -> None:
    whole = {"name": "main", "container": {"image": "x"}, **template}
    assert judged({"entrypoint": "main", "templates": [whole]}) == [f"spec.templates[0].{field}"]
