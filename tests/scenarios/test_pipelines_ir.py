"""Pipelines that kfp 2 compiled, translated and run on the embedded platform and on real Argo: one pod for each task,
no kfp in this process, nothing of the backend of Kubeflow Pipelines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.harness.argo import namespace_objects
from harness import Target, need, until
from paddlecloud.kube import yamlio
from paddlecloud.pipelines import ir
from tools import argo
from unit.local.workloads.real import Kubectl, read

GOLDEN = Path(__file__).parents[1] / "unit/pipelines/ir/golden"
pytestmark = [pytest.mark.timeout(400)]

FIRST_NODE = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node1"]}
OVER = ("Succeeded", "Failed", "Error")
SECONDS = 300  # of a run: real containers of many steps, one after the other


@pytest.fixture(autouse=True)
def repository(server: Target, kubectl: Kubectl, namespace: str) -> None:
    """On a cluster: what Argo needs in a namespace, an artifact repository among it."""
    have = kubectl("get", "workflows", check=False).returncode == 0
    need("argo", have=have, hint="`make cluster WITH=argo`")
    if not server.embedded:
        kubectl(
            "apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(namespace_objects(argo.files(), namespace))
        )


@pytest.fixture
def python_image(server: Target) -> None:
    server.offer("paddlecloud/kfp:2")


def run(kubectl: Kubectl, pipeline: str, **parameters: Any) -> dict[str, Any]:
    """The status of a workflow that is over."""
    return run_as(pipeline.replace("_", "-"), kubectl, pipeline, parameters, ir.PipelineOptions())


def run_as(
    name: str, kubectl: Kubectl, pipeline: str, parameters: dict[str, Any], options: ir.PipelineOptions
) -> dict[str, Any]:
    workflow = ir.translate((GOLDEN / f"{pipeline}.yaml").read_bytes(), parameters, name, options)
    kubectl("create", "-f", "-", input=json.dumps(workflow))
    return finished(kubectl, name)


def finished(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """The status of a workflow that is over."""
    found = until(
        lambda: read(kubectl, f"workflow/{name}"), lambda wf: wf.get("status", {}).get("phase") in OVER, timeout=SECONDS
    )
    return dict(found["status"])


def faults(status: dict[str, Any]) -> list[str]:
    """What the nodes that did not succeed say."""
    return [
        f"{node['displayName']}: {node.get('phase')}: {node.get('message')}"
        for node in status.get("nodes", {}).values()
        if node.get("phase") != "Succeeded"
    ] or [str(status.get("message"))]


def nodes(status: dict[str, Any], task: str) -> list[dict[str, Any]]:
    """Of a loop all iterations, of a retry all attempts."""
    found = [node for node in status["nodes"].values() if node["displayName"].partition("(")[0] == task]
    assert found, sorted(node["displayName"] for node in status["nodes"].values())
    return found


def outputs(status: dict[str, Any], task: str) -> dict[str, str]:
    given = [node.get("outputs", {}).get("parameters") or () for node in nodes(status, task)]
    return {each["name"]: each["value"] for one in given for each in one}


def log(kubectl: Kubectl, status: dict[str, Any], task: str) -> str:
    (node,) = (node for node in nodes(status, task) if node["type"] == "Pod")
    pods = read(kubectl, "pods")["items"]
    (pod,) = (
        each["metadata"]["name"]
        for each in pods
        if each["metadata"]["annotations"]["workflows.argoproj.io/node-id"] == node["id"]
    )
    return str(kubectl("logs", pod, "-c", "main").stdout)


def test_typed_parameters_reach_container_components_as_kubeflow_pipelines_writes_them(kubectl: Kubectl) -> None:
    status = run(kubectl, "parameters", message='a "quoted" text\nof two lines')
    assert status["phase"] == "Succeeded", faults(status)
    shown = outputs(status, "show")["out"]
    assert shown == 'text=a "quoted" text\nof two lines\n3\n0.5\ntrue\n[1,"two",{"three":3}]\n{"a":[1,2]}\n--none'
    both = 'text=a "quoted" text\nof two lines and a "quoted" text\nof two lines\n1\n2\nfalse\n[]\n{}\n--suffix\nend'
    assert outputs(status, "show-2")["out"] == both
    assert outputs(status, "parameters")["Output"] == shown


def test_artifacts_of_container_components_are_files_with_a_reference(kubectl: Kubectl) -> None:
    status = run(kubectl, "artifacts", message="some data")
    assert status["phase"] == "Succeeded", faults(status)
    assert outputs(status, "use")["out"] == "some data"
    made = json.loads(outputs(status, "make")["artifact-data"])
    assert made["type"] == {"schemaTitle": "system.Dataset", "schemaVersion": "0.0.1"}
    assert made["uri"].endswith(made["key"])
    assert f"uri {made['uri']}" in log(kubectl, status, "use")
    assert json.loads(outputs(status, "artifacts")["artifact-Output"]) == made


CLAIMS = {"claims-data": "local", "kept": "", "shared": "local"}
"""Of these tests, with their storage classes."""


@pytest.fixture
def volumes(server: Target, kubectl: Kubectl, namespace: str) -> Iterator[None]:
    """On a cluster, where nobody makes volumes, those that the claims of these tests can have."""
    if server.embedded:
        yield
        return
    made = [_volume(namespace, claim, storage) for claim, storage in CLAIMS.items()]
    kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
    yield
    kubectl("delete", "persistentvolumes", *(each["metadata"]["name"] for each in made), "--wait=false")


def _volume(namespace: str, claim: str, storage_class: str) -> dict[str, Any]:
    name = f"{namespace}-{claim}"
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
        "storageClassName": storage_class,
        "claimRef": {"namespace": namespace, "name": claim},
        "hostPath": {"path": f"/var/lib/{name}", "type": "DirectoryOrCreate"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [FIRST_NODE]}]}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


@pytest.mark.usefixtures("volumes")
def test_a_claim_is_made_used_and_deleted(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "rolebinding", "steps", "--clusterrole=edit", f"--serviceaccount={namespace}:default")
    status = run(kubectl, "claims", text="some text")
    assert status["phase"] == "Succeeded", faults(status)
    assert outputs(status, "createpvc")["name"] == "claims-data"
    assert outputs(status, "show")["out"] == "some text"
    kubectl("delete", "workflow", "claims")  # and its pods, for which Kubernetes keeps the claim
    until(lambda: read(kubectl, "persistentvolumeclaims")["items"] == [], timeout=60)


@pytest.mark.usefixtures("volumes")
def test_steps_on_a_claim_with_a_name_of_its_own_are_answered_while_it_is_the_same_claim(
    kubectl: Kubectl, namespace: str
) -> None:
    kubectl("create", "rolebinding", "steps", "--clusterrole=edit", f"--serviceaccount={namespace}:default")
    (spec,) = (value for _, value in yamlio.load_all((GOLDEN / "claims.yaml").read_text()) if "root" in value)
    (platform,) = (value for _, value in yamlio.load_all((GOLDEN / "claims.yaml").read_text()) if "root" not in value)
    claim = spec["root"]["dag"]["tasks"]["createpvc"]["inputs"]["parameters"]
    claim["pvc_name"] = {"runtimeValue": {"constant": "shared"}}
    del claim["pvc_name_suffix"], spec["root"]["dag"]["tasks"]["deletepvc"]
    text = "---\n".join(map(yamlio.dump, (spec, platform))).encode()

    def run(name: str) -> dict[str, Any]:
        kubectl("create", "-f", "-", input=json.dumps(ir.translate(text, {}, name)))
        return finished(kubectl, name)

    first, again = run("first"), run("again")
    assert (first["phase"], again["phase"]) == ("Succeeded", "Succeeded"), again
    for status, hit in ((first, False), (again, True)):
        on_the_claim = [node for task in ("keep", "show") for node in nodes(status, task)]
        assert [node["memoizationStatus"]["hit"] for node in on_the_claim] == [hit, hit]
    assert outputs(again, "show")["out"] == "kept text"


OBJECTS = """
apiVersion: v1
kind: Secret
metadata: {name: other}
stringData: {password: xyzzy}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {one: word}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: kept}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
"""


@pytest.mark.usefixtures("volumes")
def test_a_step_has_its_secrets_config_maps_claims_and_labels(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", input=OBJECTS)
    status = run(kubectl, "mounts", secret="other")
    assert status["phase"] == "Succeeded", faults(status)
    assert outputs(status, "show")["out"] == "red xyzzy word blue xyzzy word kept text\nscratch"


@pytest.mark.usefixtures("python_image")
class TestPythonComponents:
    def test_values_artifacts_and_metadata_go_from_step_to_step(self, kubectl: Kubectl) -> None:
        status = run(kubectl, "python_steps", a=0.5, n=3)
        assert status["phase"] == "Succeeded", faults(status)
        assert outputs(status, "several") == {"table": '{"n": 3}', "words": '["w", "w", "w"]', "yes": "true"}
        assert outputs(status, "judge")["Output"] == "2.5,10"
        best = json.loads(outputs(status, "judge")["artifact-best"])
        assert best["metadata"] == {"of": [["w", "w", "w"], {"n": 3}]}
        # of the two bytes "10"
        assert best["digest"] == "sha256:4a44dc15364204a80fe80e9039455cc1608281820fe2b24f1e5233ade6af1dd5"
        assert json.loads(outputs(status, "fit")["artifact-metrics"])["metadata"] == {"x": 2.5, "yes": True}

    @pytest.mark.parametrize(
        ("n", "name", "word", "skipped"),
        [
            (11, "x", "big", {"condition-3", "condition-4", "condition-6"}),
            (4, "y", "middle", {"condition-2", "condition-4", "condition-5"}),
            (3, "x", "small", {"condition-2", "condition-3", "condition-6"}),
        ],
    )
    def test_one_branch_runs_and_its_outputs_go_on(
        self, kubectl: Kubectl, n: int, name: str, word: str, skipped: set[str]
    ) -> None:
        status = run(kubectl, "conditions", n=n, name=name)
        assert status["phase"] == "Succeeded", faults(status)
        assert outputs(status, "say-4")["Output"] == word
        assert outputs(status, "read")["Output"] == f"{word} file"
        assert {node["displayName"] for node in status["nodes"].values() if node["phase"] == "Skipped"} == skipped

    def test_loops_collect_values_and_artifacts_in_the_order_of_their_items(self, kubectl: Kubectl) -> None:
        status = run(kubectl, "loops", n=3)
        assert status["phase"] == "Succeeded", faults(status)
        assert outputs(status, "total")["Output"] == "12"
        assert outputs(status, "join")["Output"] == "f2:2+f4:4+f6:6"
        assert outputs(status, "flatten")["Output"] == "120"
        loops = [node.get("outputs", {}).get("parameters", ()) for node in nodes(status, "for-loop-4")]
        collected = [each["value"] for given in loops for each in given]
        assert sorted(collected) == ["[20,40]", "[20,40]", "[[20,40],[20,40]]"]
        assert sorted(node["outputs"]["parameters"][0]["value"] for node in nodes(status, "note")) == ["1", "2"]

    def test_a_loop_over_nothing_gives_empty_lists(self, kubectl: Kubectl) -> None:
        status = run(kubectl, "loops", n=0, given=[])
        assert status["phase"] == "Succeeded", faults(status)
        assert outputs(status, "total")["Output"] == "0"
        assert outputs(status, "join")["Output"] == ""
        assert outputs(status, "flatten")["Output"] == "0"

    def test_pipelines_in_pipelines_and_imported_artifacts(self, kubectl: Kubectl) -> None:
        status = run(kubectl, "nested", text="a text", uri="s3://elsewhere/a model")
        assert status["phase"] == "Succeeded", faults(status)
        assert outputs(status, "nested")["Output"] == "6"
        assert outputs(status, "imported")["Output"] == "s3://elsewhere/a model a text"
        assert outputs(status, "imported-2")["Output"] == "s3://models/two two"
        pods = [node for node in status["nodes"].values() if node["type"] == "Pod"]
        assert len(pods) == 6  # two imports need none

    def test_an_exit_handler_reads_how_its_tasks_ended(self, kubectl: Kubectl) -> None:
        status = run(kubectl, "handlers", note="a note")
        assert status["phase"] == "Succeeded", faults(status)
        assert "a note SUCCEEDED exit-handler-1 handlers" in log(kubectl, status, "finish")
        assert "after done" in log(kubectl, status, "after")

    def test_a_failure_is_retried_then_handled_and_the_run_fails(self, kubectl: Kubectl) -> None:
        status = run(kubectl, "handlers", fail=True)
        assert status["phase"] == "Failed"
        attempts = [node["phase"] for node in nodes(status, "work") if node["type"] == "Pod"]
        assert attempts == ["Failed"] * 3
        assert "note FAILED exit-handler-1 handlers task exit-handler-1 ended as Failed" in log(
            kubectl, status, "finish"
        )
        assert "after default" in log(kubectl, status, "after")

    def test_kfp_is_not_installed_where_the_image_has_it(self, kubectl: Kubectl, server: Target) -> None:
        """What the component asks for besides is installed; pods of the test cluster reach no index of packages."""
        status = run(kubectl, "installs", x=5)
        assert "pip" not in log(kubectl, status, "double")
        if server.embedded:
            assert status["phase"] == "Succeeded", faults(status)
            assert outputs(status, "installs")["Output"] == "11"
        else:
            assert "No matching distribution found for six" in log(kubectl, status, "add")

    def test_a_step_is_answered_from_an_earlier_run_if_its_content_is_the_same(self, kubectl: Kubectl) -> None:
        first = run_as("first", kubectl, "python_steps", {"a": 1.0, "n": 2}, ir.PipelineOptions())
        again = run_as("again", kubectl, "python_steps", {"a": 1.0, "n": 2}, ir.PipelineOptions())
        assert (first["phase"], again["phase"]) == ("Succeeded", "Succeeded"), again
        assert outputs(again, "judge") == outputs(first, "judge")
        assert all(hit for _, hit in cache_hits(again))
        # another total, so another model; the facts are the same
        other = run_as("other", kubectl, "python_steps", {"a": 2.0, "n": 2}, ir.PipelineOptions())
        assert dict(cache_hits(other)) == {"add": False, "several": True, "fit": False, "fit-2": True, "judge": False}
        assert outputs(other, "judge")["Output"] == "4,10"


def cache_hits(status: dict[str, Any]) -> list[tuple[str, bool]]:
    pods = [node for node in status["nodes"].values() if node["type"] == "Pod"]
    return [(node["displayName"], bool(node["memoizationStatus"]["hit"])) for node in pods]
