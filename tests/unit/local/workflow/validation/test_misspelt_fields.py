"""A field that there is not is refused by its name, with the one that was meant."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.workflow.names import CRON_WORKFLOWS, WORKFLOWS
from paddlecloud.local.workflow.validation.admission import judge

from .test_validation import SAY, dag, spec, steps

TEMPLATE = "spec.templates[0]"
C: dict[str, Any] = {"name": "c", "image": "busybox"}
UNSERVED = "Forbidden: this platform does not serve it"
UNKNOWN = "Invalid value: there is no such field"


def refused(new: Object, old: Object | None = None, kind: Resource = WORKFLOWS) -> dict[str, str]:
    """What is said of each field."""
    objects = [
        None if each is None else {"metadata": {"name": "wf", "namespace": "default"}, "spec": each}
        for each in (new, old)
    ]
    assert objects[0] is not None
    try:
        judge(KindInfo(kind, kind.kind.lower()), objects[0], objects[1], WriteOptions(manager="kubectl"))
    except errors.Invalid as why:
        return {cause["field"]: cause["message"] for cause in (why.details or {})["causes"]}
    return {}


def of(container: dict[str, Any], **template: Any) -> Object:
    return spec({"container": {"image": "busybox", **container}, **template})


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        (of({"comand": ["x"]}), f"{TEMPLATE}.container.comand", f'{UNKNOWN}; did you mean "command"?'),
        (of({"zzz": 1}), f"{TEMPLATE}.container.zzz", UNKNOWN),
        (of({"dependencies": ["x"]}), f"{TEMPLATE}.container.dependencies", UNKNOWN),
        (of({"x" * 100_000: 1}), f"{TEMPLATE}.container.{'x' * 60}", UNKNOWN),
        (
            of({"env": [{"name": "a", "valeu": "b"}]}),
            f"{TEMPLATE}.container.env[0].valeu",
            f'{UNKNOWN}; did you mean "value"?',
        ),
        (
            of({"resources": {"limit": {"cpu": 1}}}),
            f"{TEMPLATE}.container.resources.limit",
            f'{UNKNOWN}; did you mean "limits"?',
        ),
        (
            spec({"script": {**C, "sorce": "x"}}),
            f"{TEMPLATE}.script.sorce",
            f'{UNKNOWN}; did you mean "source"?',
        ),
        (
            of({}, sidecars=[C, {**C, "mirrorVolumeMount": True}]),
            f"{TEMPLATE}.sidecars[1].mirrorVolumeMount",
            f'{UNKNOWN}; did you mean "mirrorVolumeMounts"?',
        ),
        (
            of({}, initContainers=[{**C, "arg": ["x"]}]),
            f"{TEMPLATE}.initContainers[0].arg",
            f'{UNKNOWN}; did you mean "args"?',
        ),
        (
            spec({"containerSet": {"containers": [{**C, "dependecies": ["b"]}]}}),
            f"{TEMPLATE}.containerSet.containers[0].dependecies",
            f'{UNKNOWN}; did you mean "dependencies"?',
        ),
        (
            steps(template=None, inline={"container": {**C, "comand": ["x"]}}),
            f"{TEMPLATE}.steps[0][0].inline.container.comand",
            f'{UNKNOWN}; did you mean "command"?',
        ),
        (
            spec({"http": {"url": "http://a", "metod": "GET"}}),
            f"{TEMPLATE}.http.metod",
            f'{UNKNOWN}; did you mean "method"?',
        ),
        (of({}, ouputs={"parameters": [{}]}), f"{TEMPLATE}.ouputs", f'{UNSERVED}; did you mean "outputs"?'),
        (steps(wen="true"), f"{TEMPLATE}.steps[0][0].wen", f'{UNSERVED}; did you mean "when"?'),
        (steps(dependecies=["a"]), f"{TEMPLATE}.steps[0][0].dependecies", UNSERVED),
        (
            dag({"name": "a", "template": "say", "dependecies": ["b"]}),
            f"{TEMPLATE}.dag.tasks[0].dependecies",
            f'{UNSERVED}; did you mean "dependencies"?',
        ),
        (
            spec({"resource": {"action": "get", "manifest": "a", "sucessCondition": "a"}}),
            f"{TEMPLATE}.resource.sucessCondition",
            f'{UNSERVED}; did you mean "successCondition"?',
        ),
        (
            spec({"container": C}, serviceAcountName="x"),
            "spec.serviceAcountName",
            f'{UNSERVED}; did you mean "serviceAccountName"?',
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_misspelt_field_is_refused_with_the_one_that_was_meant(given: Object, field: str, message: str) -> None:
    assert refused(given) == {field: message}


def test_a_misspelt_entrypoint_is_missing_as_well() -> None:
    given = {"entrypiont": "say", "templates": [SAY]}
    assert refused(given) == {
        "spec.entrypiont": f'{UNSERVED}; did you mean "entrypoint"?',
        "spec.entrypoint": "Required value: the template to begin with",
    }


def test_what_argo_adds_to_containers_and_what_clients_leave_empty_is_taken() -> None:
    whole = {
        **C,
        "env": [{"name": "{{workflow.name}}", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"limits": {"example.com/any": 1}},
        "securityContext": {"runAsUser": "{{=1000}}"},
        "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
    }
    mirrored = {**whole, "mirrorVolumeMounts": True, "creationTimestamp": None}
    pair = [whole, {**whole, "name": "d", "dependencies": ["c"]}]
    for template in (
        {"container": whole, "sidecars": [mirrored], "initContainers": [{**mirrored, "name": "i"}]},
        {"script": {**whole, "source": "echo"}},
        {"containerSet": {"containers": pair}},
    ):
        assert refused(spec(template)) == {}


def test_a_schedule_that_is_stored_with_such_a_field_may_be_written_as_it_is() -> None:
    """Its controller writes the status."""
    stored = {"schedule": "@hourly", "workflowSpec": of({"comand": ["x"]})}
    assert refused(stored, old=stored, kind=CRON_WORKFLOWS) == {}
    assert list(refused({**stored, "schedule": "@daily"}, old=stored, kind=CRON_WORKFLOWS)) == [
        "spec.workflowSpec.templates[0].container.comand"
    ]
