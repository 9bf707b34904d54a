"""The Workflow of a run: parameters, ids, marks, names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs.package import PackageError, of_document, read
from paddlecloud.pipelines.runs.submission import RunRequest, check_names, dns_prefix, workflow_of

WORKFLOW = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Workflow",
    "metadata": {
        "generateName": "two-steps-", "namespace": "victim", "finalizers": ["x"], "labels": {"a": "b"},
        "ownerReferences": [{"uid": "1"}],
    },
    "spec": {
        "entrypoint": "main",
        "serviceAccountName": "pipeline-runner",
        "arguments": {"parameters": [{"name": "msg", "value": "hello"}, {"name": "list"}]},
        "templates": [{"name": "main", "container": {"image": "busybox", "args": ["{{workflow.uid}}"]}}],
    },
    "status": {"phase": "Succeeded"},
}  # fmt: skip
REQUEST = RunRequest("r 1", "team-a", run_id="u-1", experiment_id="e", parameters={"msg": 'say "hi"', "list": [1, "x"]})


def test_a_run_has_its_values_its_id_and_its_marks_and_nothing_else_of_the_manifests_metadata() -> None:
    made = workflow_of(of_document(WORKFLOW), REQUEST, suffix="abcde")
    meta = made["metadata"]
    assert (meta["name"], meta["namespace"]) == ("two-steps-abcde", "team-a")
    assert meta["labels"] == {"a": "b", names.RUN_ID: "u-1", names.EXPERIMENT_ID: "e"}
    assert meta["annotations"][names.RUN_NAME] == "r 1"
    assert json.loads(meta["annotations"][names.PARAMETERS]) == {"msg": 'say "hi"', "list": [1, "x"]}
    assert set(meta) == {"name", "namespace", "labels", "annotations"}
    assert "status" not in made
    values = {each["name"]: each["value"] for each in made["spec"]["arguments"]["parameters"]}
    assert values == {"msg": 'say "hi"', "list": '[1,"x"]'}
    assert made["spec"]["templates"][0]["container"]["args"] == ["u-1"]
    assert made["spec"]["serviceAccountName"] == "pipeline-runner"
    assert WORKFLOW["spec"]["arguments"]["parameters"][0]["value"] == "hello"  # type: ignore[index]


def test_an_account_that_was_asked_for_wins_and_a_recurring_run_keeps_argos_own_id() -> None:
    made = workflow_of(of_document(WORKFLOW), REQUEST._replace(run_id="", service_account="mine"), suffix="x")
    assert made["spec"]["serviceAccountName"] == "mine"
    assert made["spec"]["templates"][0]["container"]["args"] == ["{{workflow.uid}}"]
    assert names.RUN_ID not in made["metadata"]["labels"]


GOLDEN = Path(__file__).parents[1] / "ir" / "golden" / "loops.yaml"
MEMOIZE = {"key": "k", "cache": {"configMap": {"name": "c"}}}


@pytest.mark.parametrize("cache", [True, False])
def test_caching_can_be_switched_off_for_a_pipeline_of_kfp_2(cache: bool) -> None:
    made = workflow_of(read(GOLDEN.read_bytes()), RunRequest("r", "n", cache=cache), suffix="x")
    assert any("memoize" in each for each in made["spec"]["templates"]) is cache


def test_caching_can_be_switched_off_for_a_workflow() -> None:
    template = {"name": "main", "container": {"image": "busybox"}, "memoize": MEMOIZE}
    spec = {"entrypoint": "main", "templates": [template, "no template"], "templateDefaults": {"memoize": MEMOIZE}}
    package = of_document({"kind": "Workflow", "metadata": {"name": "w"}, "spec": spec})
    kept = workflow_of(package, RunRequest("r", "n"), suffix="x")["spec"]
    assert (kept["templates"][0], kept["templateDefaults"]) == (template, {"memoize": MEMOIZE})
    made = workflow_of(package, RunRequest("r", "n", cache=False), suffix="x")["spec"]
    assert made["templates"] == [{"name": "main", "container": {"image": "busybox"}}, "no template"]
    assert made["templateDefaults"] == {}


def test_a_workflow_that_refers_to_a_template_stays_as_it_is_without_caching() -> None:
    spec = {"workflowTemplateRef": {"name": "t"}}
    package = of_document({"kind": "Workflow", "metadata": {"name": "w"}, "spec": spec})
    assert workflow_of(package, RunRequest("r", "n", cache=False), suffix="x")["spec"] == spec


def test_a_parameter_that_the_pipeline_does_not_have_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(PackageError, match=r"no parameter 'mgs' \(it has: list, msg\); did you mean .*msg"):
        workflow_of(of_document(WORKFLOW), RunRequest("r", "n", parameters={"mgs": "1"}), suffix="x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two-steps-", "two-steps-"),
        ("文本检测", "run-"),
        ("A b_c", "a-b-c-"),
        ("x" * 99, "x" * 45 + "-"),
        ("---", "run-"),
    ],
)
def test_any_name_becomes_the_beginning_of_an_objects_name(text: str, expected: str) -> None:
    assert dns_prefix(text) == expected


def test_a_wrong_name_beside_very_many_is_answered_in_few_words() -> None:
    known = [f"parameter-{number}" for number in range(20_000)]
    with pytest.raises(PackageError) as refused:
        check_names(known, ["parameter-0x" + "y" * 5_000])
    message = str(refused.value)
    assert "parameter-10, parameter-100" in message
    assert "and 19,950 more" in message
    assert len(message) < 2_000
