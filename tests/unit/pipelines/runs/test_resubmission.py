"""A new run like an earlier one: what is carried over, what is not, and other values for parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube import yamlio
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs.package import PackageError, of_document, read
from paddlecloud.pipelines.runs.resubmission import resubmitted
from paddlecloud.pipelines.runs.submission import RunRequest, workflow_of

GOLDEN = Path(__file__).parents[1] / "ir" / "golden"
OLD, NEW = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
WORKFLOW: Object = {
    "kind": "Workflow",
    "metadata": {"generateName": "two-steps-", "labels": {"team": "a"}},
    "spec": {
        "entrypoint": "main",
        "arguments": {"parameters": [{"name": "msg", "value": "hello"}, {"name": "at", "value": "/{{workflow.uid}}"}]},
        "templates": [{"name": "main", "container": {"image": "busybox", "args": ["{{workflow.uid}}"]}}],
    },
}


def run_of(document: Object | bytes, **parameters: Any) -> Object:
    """A run as it lies in the cluster when it is over."""
    package = read(document) if isinstance(document, bytes) else of_document(document)
    request = RunRequest("r 1", "team-a", run_id=OLD, experiment_id="e", parameters=parameters)
    made = workflow_of(package, request, suffix="bcdfg")
    made["metadata"]["labels"] |= {names.PHASE: "Failed", names.COMPLETED: "true", names.STORAGE_STATE: "ARCHIVED"}
    made["spec"]["shutdown"] = "Stop"
    return {**made, "status": {"phase": "Failed", "nodes": {"n": {}}}}


def again(workflow: Object, cache: bool = True, **parameters: Any) -> Object:
    return resubmitted(workflow, parameters, run_id=NEW, suffix="hjklm", cache=cache)


def values(workflow: Object) -> dict[str, str]:
    return {each["name"]: each["value"] for each in workflow["spec"]["arguments"]["parameters"]}


def test_the_spec_is_carried_over_and_what_is_of_the_earlier_run_is_not() -> None:
    made = again(run_of(WORKFLOW, msg="hi"))
    meta = made["metadata"]
    assert (meta["name"], meta["namespace"]) == ("two-steps-hjklm", "team-a")
    assert meta["labels"] == {
        "team": "a", names.RUN_ID: NEW, names.EXPERIMENT_ID: "e", names.RESUBMITTED_FROM: "two-steps-bcdfg",
    }  # fmt: skip
    assert meta["annotations"][names.RUN_NAME] == "r 1"
    assert "status" not in made
    assert "shutdown" not in made["spec"]
    assert made["spec"]["templates"][0]["container"]["args"] == [NEW]
    assert values(made) == {"msg": "hi", "at": f"/{NEW}"}


def test_other_values_replace_those_of_the_earlier_run_and_are_remembered_with_them() -> None:
    first = run_of(WORKFLOW, msg=f"read {OLD}")
    assert values(again(first))["msg"] == f"read {OLD}"  # a user's own value, which names the earlier run
    made = again(first, at=[1, 2])
    assert values(made) == {"msg": f"read {OLD}", "at": "[1,2]"}
    assert json.loads(made["metadata"]["annotations"][names.PARAMETERS]) == {"msg": f"read {OLD}", "at": [1, 2]}
    assert values(again(made, msg="x")) == {"msg": "x", "at": "[1,2]"}


def test_names_do_not_grow_from_one_resubmission_to_the_next() -> None:
    plain = {**WORKFLOW, "metadata": {"name": "mine", "namespace": "n"}}
    first = again(plain)
    assert first["metadata"]["name"] == "mine-hjklm"
    assert again(first)["metadata"]["name"] == "mine-hjklm"


def test_a_parameter_that_the_run_does_not_have_is_named() -> None:
    with pytest.raises(PackageError, match=r"no parameter 'mgs' \(it has: at, msg\); did you mean .*msg"):
        again(run_of(WORKFLOW), mgs="x")


def test_arguments_of_a_workflow_that_refers_to_a_template_are_those_of_the_template() -> None:
    workflow = {
        "metadata": {"name": "w", "namespace": "n"},
        "spec": {"workflowTemplateRef": {"name": "t"}},
        "status": {"storedWorkflowTemplateSpec": WORKFLOW["spec"]},
    }
    assert values(again(workflow, msg="x")) == {"msg": "x"}
    with pytest.raises(PackageError, match="no parameter 'other'"):
        again(workflow, other="x")


class TestPipelinesOfKfp2:
    def document(self) -> Object:
        ((_, document),) = yamlio.load_all((GOLDEN / "parameters.yaml").read_text())
        return dict(document)

    def first(self, **parameters: Any) -> Object:
        return run_of((GOLDEN / "parameters.yaml").read_bytes(), **parameters)

    def test_values_have_the_types_of_the_pipeline(self) -> None:
        made = values(again(self.first(), number="7", flag="false", ratio=2))
        assert {key: made[key] for key in ("number", "flag", "ratio")} == {"number": "7", "flag": "false", "ratio": "2"}

    @pytest.mark.parametrize(("given", "sentence"), [
        ({"number": "seven"}, "parameters.number: must be a whole number"),
        ({"flag": "True"}, "parameters.flag: must be true or false"),
        ({"pipeline-launcher": "x"}, "no parameter 'pipeline-launcher'"),
    ])  # fmt: skip
    def test_other_types_and_what_is_no_parameter_of_the_pipeline_are_refused(
        self, given: dict[str, str], sentence: str
    ) -> None:
        with pytest.raises(PackageError, match=sentence):
            again(self.first(), **given)

    def test_only_values_that_the_pipeline_lists_are_taken(self) -> None:
        document = self.document()
        document["root"]["inputDefinitions"]["parameters"]["message"]["literals"] = ["hello", "bye"]
        assert values(again(run_of(document), message="bye"))["message"] == "bye"
        with pytest.raises(PackageError, match=r"parameters.message: must be one of hello, bye"):
            again(run_of(document), message="good day")

    def test_a_parameter_that_was_left_out_cannot_be_added(self) -> None:
        document = self.document()
        document["root"]["inputDefinitions"]["parameters"]["note"] = {"parameterType": "STRING", "isOptional": True}
        with pytest.raises(PackageError, match="made without a value for 'note'"):
            again(run_of(document), note="x")

    def test_braces_in_a_text_are_not_taken_for_a_tag(self) -> None:
        assert values(again(self.first(), message="{{x}}"))["message"] == "{{='{' + '{'}}x}}"

    def test_steps_are_taken_from_the_cache_or_not(self) -> None:
        first = run_of((GOLDEN / "loops.yaml").read_bytes())
        assert any("memoize" in each for each in again(first)["spec"]["templates"])
        assert not any("memoize" in each for each in again(first, cache=False)["spec"]["templates"])

    def test_an_annotation_that_somebody_wrote_is_no_reason_to_fail_otherwise(self) -> None:
        first = self.first()
        for text in ("{", "[]", "5"):
            first["metadata"]["annotations"][names.INPUTS] = text
            assert values(again(first, number=3))["number"] == "3"
        first["metadata"]["annotations"][names.INPUTS] = '{"number": 5}'
        with pytest.raises(PackageError, match="Expected `object`"):
            again(first, number=3)
