"""What becomes what: fields of the IR and their place in the Workflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube import yamlio
from paddlecloud.pipelines import ir

GOLDEN = Path(__file__).parent / "golden"


def templates(name: str, options: ir.PipelineOptions | None = None, **parameters: Any) -> dict[str, dict[str, Any]]:
    workflow = ir.translate((GOLDEN / f"{name}.yaml").read_bytes(), parameters, "run", options)
    return {each["name"]: each for each in workflow["spec"]["templates"]}


def tasks(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in template["dag"]["tasks"]}


def arguments(task: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in task["arguments"]["parameters"]}


PLACEMENT: dict[str, Any] = {
    "resources": {
        "limits": {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "1"}, "requests": {"cpu": "1", "memory": "1G"},
    },
    "imagePullPolicy": "Always",
    "securityContext": {"runAsUser": 1000},
    "env": [
        {"name": "COLOUR", "value": "red"},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "pass", "key": "password", "optional": False}}},
        {"name": "ONE", "valueFrom": {"configMapKeyRef": {"name": "words", "key": "one", "optional": False}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ],
    "volumeMounts": [
        {"name": "k8s-claim-0", "mountPath": "/data"},
        {"name": "k8s-claim-1", "mountPath": "/given", "subPath": "inner"},
        {"name": "k8s-secret-volume-0", "mountPath": "/pass"},
        {"name": "k8s-config-volume-0", "mountPath": "/words"},
        {"name": "scratch", "mountPath": "/scratch"},
        {"name": "eph", "mountPath": "/eph"},
    ],
}  # fmt: skip


@pytest.mark.parametrize("field", PLACEMENT)
def test_what_kfp_kubernetes_asks_of_a_container(field: str) -> None:
    assert templates("placement")["work"]["container"][field] == PLACEMENT[field]


POD: dict[str, Any] = {
    "activeDeadlineSeconds": 60,
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "metadata": {"labels": {"team": "red"}, "annotations": {"note": "long text"}},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
            }
        }
    },
    "volumes": [
        {"name": "k8s-claim-0", "persistentVolumeClaim": {"claimName": "{{inputs.parameters.k8s-claim-0}}"}},
        {"name": "k8s-claim-1", "persistentVolumeClaim": {"claimName": "{{inputs.parameters.k8s-claim-1}}"}},
        {"name": "k8s-secret-volume-0", "secret": {"secretName": "pass", "optional": True}},
        {"name": "k8s-config-volume-0", "configMap": {"name": "words", "optional": False}},
        {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "eph", "ephemeral": {"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "standard",
        }}}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("field", POD)
def test_what_kfp_kubernetes_asks_of_a_pod(field: str) -> None:
    assert templates("placement")["work"][field] == POD[field]


def test_secrets_for_images_are_those_of_the_workflow() -> None:
    workflow = ir.translate((GOLDEN / "placement.yaml").read_bytes(), {}, "run")
    assert workflow["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_what_comes_as_json_from_a_parameter_is_a_patch_of_the_pod() -> None:
    documents = [value for _, value in yamlio.load_all((GOLDEN / "placement.yaml").read_text())]
    work = documents[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]["exec-work"]
    given = {"componentInputParameter": "node"}
    work["nodeSelector"] = {"nodeSelectorJson": given}
    work["tolerations"] = [{"key": "a", "operator": "Exists"}, {"tolerationJson": given}]
    workflow = ir.workflow_of(ir.read_documents(documents), {}, "run")
    found = next(each for each in workflow["spec"]["templates"] if each["name"] == "work")
    json_text = found["podSpecPatch"]
    for slot, value in {"k8s-node-selector": '{"b": "c"}', "k8s-toleration-1": '{"key": "d"}'}.items():
        json_text = json_text.replace(f"{{{{inputs.parameters.{slot}}}}}", value)
    assert json.loads(json_text) == {
        "nodeSelector": {"b": "c"}, "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "d"}],
    }  # fmt: skip


def test_claims_come_from_parameters_and_from_other_tasks() -> None:
    found = templates("placement")
    work = tasks(found["root"])["work"]
    assert arguments(work) == {
        "k8s-claim-0": "{{tasks.createpvc.outputs.parameters.name}}", "k8s-claim-1": "{{inputs.parameters.claim}}",
        "k8s-claim-0-uid": "{{tasks.createpvc.outputs.parameters.uid}}",
    }  # fmt: skip
    assert work["depends"] == "createpvc"
    assert found["createpvc"]["resource"]["action"] == "create"
    assert found["deletepvc"]["resource"]["action"] == "delete"
    assert found["createpvc"]["outputs"]["parameters"][0]["valueFrom"] == {"jsonPath": "{.metadata.name}"}


def test_a_retry_has_its_back_off() -> None:
    expected = {
        "limit": "2",
        "retryPolicy": "Always",
        "backoff": {"duration": "1s", "factor": "2", "maxDuration": "120s"},
    }
    assert templates("handlers")["work"]["retryStrategy"] == expected


def test_a_step_with_retries_is_not_cached_for_argo_would_never_end_the_run() -> None:
    found = templates("handlers")
    assert "memoize" in found["after"]
    assert "memoize" not in found["work"]


def test_a_loop_has_its_limit_and_collects_lists() -> None:
    loop = templates("loops")["for-loop-1-items"]
    assert loop["parallelism"] == 2
    assert [each["name"] for each in loop["outputs"]["parameters"]] == [
        "pipelinechannel--double-Output", "artifact-pipelinechannel--save-data",
    ]  # fmt: skip
    assert tasks(loop)["for-loop-1"]["withParam"] == "{{inputs.parameters.loop-items}}"


def test_a_failure_counts_though_a_task_runs_after_it() -> None:
    root = tasks(templates("handlers")["root"])
    finish = root["finish"]["depends"]
    assert finish == "(" + " || ".join(
        f"exit-handler-1.{end}" for end in ("Succeeded", "Skipped", "Failed", "Errored", "Omitted")
    ) + ")"  # fmt: skip
    assert root["upstream-succeeded"]["depends"] == "exit-handler-1"
    assert root["upstream-succeeded"]["when"] == "false"


def test_one_pod_a_task_and_none_for_imports() -> None:
    found = templates("nested")
    assert "importer" not in tasks(found["root"])
    assert "depends" not in tasks(found["root"])["imported"]
    with_pods = [each for each in found.values() if "container" in each]
    assert len(with_pods) == 6


class TestCaching:
    def keys(self, **parameters: Any) -> dict[str, Any]:
        found = templates("loops", ir.PipelineOptions(cache=True), **parameters)
        return {name: each["memoize"] for name, each in found.items() if "memoize" in each}

    def test_steps_that_allow_it_are_memoised_in_a_config_map_of_their_component(self) -> None:
        name = "pipeline-cache-{{workflow.namespace}}.loops-total"
        assert self.keys()["total"]["cache"] == {"configMap": {"name": name}}

    def test_the_key_does_not_depend_on_values_that_are_known_only_later(self) -> None:
        assert self.keys(n=3) == self.keys(n=4)
        assert "inputs.parameters.values" in self.keys()["total"]["key"]

    def test_what_makes_artifacts_inside_of_a_loop_is_not_memoised(self) -> None:
        assert "save" not in self.keys()
        assert "double" in self.keys()

    def test_another_program_has_another_key(self) -> None:
        (document,) = (value for _, value in yamlio.load_all((GOLDEN / "loops.yaml").read_text()))
        document["deploymentSpec"]["executors"]["exec-total"]["container"]["image"] = "other:1"
        workflow = ir.workflow_of(ir.read_documents([document]), {}, "run", ir.PipelineOptions(cache=True))
        changed = next(each for each in workflow["spec"]["templates"] if each["name"] == "total")
        assert changed["memoize"]["key"] != self.keys()["total"]["key"]

    def test_a_task_that_does_not_allow_it_is_not_memoised(self) -> None:
        assert "memoize" not in templates("placement", ir.PipelineOptions(cache=True))["work"]

    def test_another_claim_under_the_same_name_is_another_key(self) -> None:
        found = templates("claims", ir.PipelineOptions(cache=True))
        given = {each["name"]: each.get("value") for each in found["keep"]["inputs"]["parameters"]}
        assert given == {"text": None, "k8s-claim-0": None, "k8s-claim-0-uid": ""}
        assert "inputs.parameters['k8s-claim-0-uid']" in found["keep"]["memoize"]["key"]
        uid = "{{tasks.createpvc.outputs.parameters.uid}}"
        assert arguments(tasks(found["root"])["keep"])["k8s-claim-0-uid"] == uid

    def test_the_identity_of_a_claim_is_known_in_loops_and_nested_pipelines(self) -> None:
        spec, platform = (value for _, value in yamlio.load_all((GOLDEN / "claims.yaml").read_text()))
        inner, outer = spec["root"]["dag"]["tasks"].pop("keep"), spec["root"]["dag"]["tasks"]
        inner |= {"inputs": {"parameters": {"text": {"componentInputParameter": "word"}}}, "dependentTasks": []}
        outer["each"] = {
            "componentRef": {"name": "comp-each"}, "taskInfo": {"name": "each"}, "dependentTasks": ["createpvc"],
            "parameterIterator": {"itemInput": "word", "items": {"raw": '["a", "b"]'}},
            "inputs": {"parameters": {"made": {"taskOutputParameter": {
                "producerTask": "createpvc", "outputParameterKey": "name"}}}},
        }  # fmt: skip
        outer["show"]["dependentTasks"] = ["createpvc", "each"]
        inputs = {"parameters": {"made": {"parameterType": "STRING"}, "word": {"parameterType": "STRING"}}}
        spec["components"]["comp-each"] = {"dag": {"tasks": {"keep": inner}}, "inputDefinitions": inputs}
        mount = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]["exec-keep"]["pvcMount"][0]
        del mount["taskOutputParameter"]
        mount["pvcNameParameter"] = {"componentInputParameter": "made"}
        workflow = ir.workflow_of(ir.read_documents([spec, platform]), {}, "run", ir.PipelineOptions(cache=True))
        found = {each["name"]: each for each in workflow["spec"]["templates"]}
        assert arguments(tasks(found["root"])["each"])["made-uid"] == "{{tasks.createpvc.outputs.parameters.uid}}"
        assert arguments(tasks(found["each-items"])["each"])["made-uid"] == "{{inputs.parameters.made-uid}}"
        assert arguments(tasks(found["each"])["keep"])["k8s-claim-0-uid"] == "{{inputs.parameters.made-uid}}"
        assert {"name": "made-uid"} in found["each"]["inputs"]["parameters"]

    def test_a_claim_with_a_name_of_its_own_may_be_there_already(self) -> None:
        text = (
            (GOLDEN / "claims.yaml")
            .read_text()
            .replace("pvc_name_suffix:\n              runtimeValue", "pvc_name:\n              runtimeValue")
        )
        found = {each["name"]: each for each in ir.translate(text.encode(), {}, "run")["spec"]["templates"]}
        assert found["createpvc"]["resource"]["action"] == "apply"
        assert templates("claims")["createpvc"]["resource"]["action"] == "create"

    def test_claims_are_made_anew(self) -> None:
        found = templates("placement", ir.PipelineOptions(cache=True))
        assert "memoize" not in found["createpvc"]
        assert "memoize" not in found["deletepvc"]


def test_settings_of_the_pipeline() -> None:
    documents = [value for _, value in yamlio.load_all((GOLDEN / "placement.yaml").read_text())]
    documents[1]["platforms"]["kubernetes"]["pipelineConfig"] = {
        "resourceTtlOnCompletion": 60,
        "activeDeadlineSeconds": 9,
    }
    spec = ir.workflow_of(ir.read_documents(documents), {}, "run")["spec"]
    assert (spec["ttlStrategy"], spec["activeDeadlineSeconds"]) == ({"secondsAfterCompletion": 60}, 9)


def test_components_that_contain_many_are_bounded() -> None:
    """Ten layers of ten tasks each would be ten thousand million templates if every use had its own."""
    (document,) = (value for _, value in yamlio.load_all((GOLDEN / "parameters.yaml").read_text()))
    echo = {"message": {"runtimeValue": {"constant": "a"}}}
    inner = "comp-echo"
    for layer in range(10):
        tasks = {
            f"t{number}": {
                "componentRef": {"name": inner},
                **({"inputs": {"parameters": echo}} if layer == 0 else {}),
            }
            for number in range(10)
        }
        inner = f"comp-layer-{layer}"
        document["components"][inner] = {"dag": {"tasks": tasks}}
    document["root"]["dag"]["tasks"]["deep"] = {"componentRef": {"name": inner}}
    workflow = ir.workflow_of(ir.read_documents([document]), {}, "run", ir.PipelineOptions(cache=False))
    assert len(workflow["spec"]["templates"]) == 4 + 10
