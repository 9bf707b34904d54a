"""Templates that run in a pod: what is refused when a workflow is written, and what conditions and paths mean."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.local.workflow.executor import conditions, jsonpath
from paddlecloud.local.workflow.executor.flags import Flags
from paddlecloud.local.workflow.executor.orders import ExecutorError
from unit.local.workflow.validation.test_validation import judged

C = {"name": "c", "image": "busybox", "command": ["true"]}
RESOURCE = {"action": "create", "manifest": "kind: X"}


def of(template: dict[str, Any], **more: Any) -> list[str]:
    return judged({"entrypoint": "main", "templates": [{"name": "main", **template}], **more})


REFUSED: dict[str, tuple[list[str], str]] = {
    "an action": (of({"resource": {**RESOURCE, "action": "drop"}}), "resource.action"),
    "no manifest": (of({"resource": {"action": "create"}}), "resource.manifest"),
    "a condition": (of({"resource": {**RESOURCE, "successCondition": "a === b"}}), "resource.successCondition"),
    "a flag": (of({"resource": {**RESOURCE, "flags": ["--kubeconfig=x"]}}), "resource.flags"),
    "a path": (
        of({"resource": RESOURCE, "outputs": {"parameters": [{"name": "x", "valueFrom": {"jsonPath": "{..a}"}}]}}),
        "outputs.parameters[0].valueFrom.jsonPath",
    ),
    "a set without containers": (of({"containerSet": {"containers": []}}), "containerSet.containers"),
    "an unknown dependency": (
        of({"containerSet": {"containers": [{**C, "dependencies": ["x"]}]}}),
        "containerSet.containers",
    ),
    "a circle": (of({"containerSet": {"containers": [{**C, "dependencies": ["c"]}]}}), "containerSet.containers"),
    "a patch with aliases": (of({"container": C, "podSpecPatch": "a: &a [1]\nb: *a"}), "podSpecPatch"),
    "a patch that is no map": (of({"container": C, "podSpecPatch": "- 1"}), "podSpecPatch"),
    "a patch that is too long": (of({"container": C, "podSpecPatch": "#" * 70_000}), "podSpecPatch"),
    "a claim without a name": (
        of({"container": C}, volumeClaimTemplates=[{}]),
        "volumeClaimTemplates[0].metadata.name",
    ),
}


@pytest.mark.parametrize(("fields", "field"), REFUSED.values(), ids=REFUSED.keys())
def test_it_is_refused_by_its_field(fields: list[str], field: str) -> None:
    assert [name for name in fields if name.endswith(field)], fields


OBJECT = {
    "metadata": {"name": "n", "labels": {"a.b/c": "d"}},
    "status": {"phase": "Running", "succeeded": 2, "conditions": [{"type": "Ready", "status": "True"}, {"type": "X"}]},
}


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ("status.phase == Running", True),
        ("status.phase = Running, status.succeeded > 1", True),
        ("status.phase != Running", False),
        ("status.nothing != Running", True),
        ("status.succeeded > 2", False),
        ("status.succeeded < 3", True),
        ("status.phase in (Failed, Running)", True),
        ("status.phase notin (Failed, Running)", False),
        ("status.nothing", False),
        ("status.phase", True),
        ("!status.nothing", True),
        ("status.conditions.0.type == Ready", True),
    ],
)
def test_conditions_are_selectors_over_fields(condition: str, verdict: bool) -> None:
    assert all(conditions.holds(each, OBJECT) for each in conditions.parsed(condition)) is verdict


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("{.metadata.name}", "n"),
        (".metadata.name", "n"),
        ('{.status.conditions[?(@.type=="Ready")].status}', "True"),
        ("{.status.conditions[*].type}", "Ready X"),
        ("{.status.conditions[-1].type}", "X"),
        ("{.metadata.labels['a.b/c']}", "d"),
        ("{.nothing.at.all}", ""),
        ("{.metadata.name}-{.status.phase}", "n-Running"),
    ],
)
def test_json_paths_name_parts_of_an_object(path: str, value: str) -> None:
    assert jsonpath.json_path(path, OBJECT) == value


def test_paths_of_jq_and_what_is_not_served() -> None:
    assert jsonpath.jq(".status.conditions[] | .type", OBJECT) == "Ready\nX"
    assert jsonpath.jq(".metadata.labels", OBJECT) == '{"a.b/c":"d"}'
    with pytest.raises(ExecutorError):
        jsonpath.jq("map(.x)", OBJECT)


def test_flags_of_kubectl() -> None:
    flags = Flags.of(["configmap", "--selector", "a=b", "--validate=false"])
    assert (flags.kind, flags.selector, flags.validation) == ("configmap", "a=b", {"fieldValidation": "Ignore"})
    assert Flags.of(["pod/x"]).name == "x"
