"""PaddleJob: what is understood, what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.api import paddlejob
from paddlecloud.api.schema import root_schema
from paddlecloud.local.apiserver.schema import structural


def job(spec: dict[str, Any], name: str = "demo") -> paddlejob.PaddleJob:
    return paddlejob.decode({"metadata": {"name": name, "namespace": "paddle-system"}, "spec": spec})


def role(replicas: int | None = 1, **more: Any) -> dict[str, Any]:
    block = {"template": {"spec": {"containers": [{"name": "paddle", "image": "demo:v1"}]}}, **more}
    return block if replicas is None else {"replicas": replicas, **block}


@pytest.mark.parametrize(
    ("written", "meant", "warned"),
    [
        (None, "OnCompletion", False),
        ("", "OnCompletion", False),
        ("Always", "Always", False),
        ("Never", "Never", False),
        ("OnFailure", "OnFailure", False),
        ("OnCompletion", "OnCompletion", False),
        ("Nerver", "Never", True),
        ("never", "Never", True),
        ("OnFailed", "OnFailure", True),
        ("OnFail", "OnFailure", True),
        ("OnSuccess", "OnCompletion", True),
        ("OnCompleted", "OnCompletion", True),
        ("All", "Always", True),
        ("None", "Never", True),
        ("Running", "Running", False),
        ("Sometimes", "Never", True),
    ],
)
def test_clean_pod_policy_is_understood_in_every_spelling_found_in_the_wild(
    written: str | None, meant: str, warned: bool
) -> None:
    spec = {"worker": role()} | ({} if written is None else {"cleanPodPolicy": written})
    settings, warnings = paddlejob.normalise(job(spec))
    assert settings.clean_pod_policy == meant
    assert bool(warnings) == warned


def test_clean_policy_is_an_alias_and_loses_against_the_proper_name() -> None:
    settings, warnings = paddlejob.normalise(job({"worker": role(), "cleanPolicy": "Always"}))
    assert settings.clean_pod_policy == "Always"
    assert "cleanPodPolicy" in warnings[0]
    both = {"worker": role(), "cleanPolicy": "Always", "cleanPodPolicy": "Never"}
    assert paddlejob.normalise(job(both)).settings.clean_pod_policy == "Never"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (None, "PodIP"),
        ("PodIP", "PodIP"),
        ("podip", "PodIP"),
        ("SERVICE", "Service"),
        ("host", "Host"),
        ("HostNetwork", "Host"),
    ],
)
def test_intranet_is_understood_whatever_its_case(written: str | None, meant: str) -> None:
    spec = {"worker": role()} | ({} if written is None else {"intranet": written})
    assert paddlejob.normalise(job(spec)).settings.intranet == meant
    assert paddlejob.validate(job(spec)) == []


@pytest.mark.parametrize(
    ("spec", "mode"),
    [
        ({"ps": role(1), "worker": role(1)}, "PS"),
        ({"ps": role(1), "worker": role(1), "heter": role(1)}, "PS"),
        ({"worker": role(2)}, "Collective"),
        ({"worker": role(1)}, "Single"),
        ({"worker": role(None)}, "Single"),
        ({}, "Single"),
    ],
)
def test_mode_follows_the_roles(spec: dict[str, Any], mode: str) -> None:
    assert paddlejob.normalise(job(spec)).settings.mode == mode


@pytest.mark.parametrize(
    ("spec", "limit"),
    [
        ({"worker": role(2)}, 3),
        ({"worker": role(2, restartPolicy="Never")}, 0),
        ({"worker": role(2, restartPolicy="ExitCode")}, 3),
        ({"worker": role(2), "backoffLimit": 7}, 7),
        ({"worker": role(2), "runPolicy": {"backoffLimit": 5}}, 5),
        ({"worker": role(2), "runPolicy": {"backoffLimit": 5}, "backoffLimit": 0}, 0),
        ({"worker": {"replicas": 2, "template": {"spec": {"restartPolicy": "Never", "containers": []}}}}, 0),
    ],
)
def test_restart_budget_is_what_was_written_or_follows_the_restart_policy(spec: dict[str, Any], limit: int) -> None:
    assert paddlejob.normalise(job(spec)).settings.backoff_limit == limit


def test_gloo_without_parameter_servers_is_ignored_and_said() -> None:
    settings, warnings = paddlejob.normalise(job({"worker": role(2), "withGloo": 1}))
    assert settings.with_gloo == 0
    assert any("withGloo" in warning for warning in warnings)


def test_gang_defaults_to_all_pods_of_all_roles() -> None:
    settings = paddlejob.normalise(job({"ps": role(2), "worker": role(3)})).settings
    assert (settings.scheduling.requested, settings.scheduling.min_available) == (False, 5)
    policy = {"queue": "q", "minAvailable": 2, "minResources": {"cpu": 4}}
    scheduling = paddlejob.normalise(job({"worker": role(3), "schedulingPolicy": policy})).settings.scheduling
    assert (scheduling.requested, scheduling.min_available, scheduling.queue) == (True, 2, "q")
    assert scheduling.min_resources == {"cpu": "4"}


def test_elastic_bounds_default_to_replicas() -> None:
    worker = paddlejob.normalise(job({"elastic": 1, "worker": role(3, requests=2)})).settings.role("worker")
    assert worker is not None
    assert (worker.minimum, worker.replicas, worker.maximum) == (2, 3, 3)


BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("no role", {}, "spec", "FieldValueRequired"),
    ("nothing to run", {"worker": role(0)}, "spec", "FieldValueInvalid"),
    ("no template", {"worker": {"replicas": 1}}, "spec.worker.template.spec", "FieldValueRequired"),
    (
        "no container",
        {"worker": {"template": {"spec": {"containers": []}}}},
        "spec.worker.template.spec.containers",
        "FieldValueRequired",
    ),
    (
        "no image",
        {"worker": {"template": {"spec": {"containers": [{"name": "a"}]}}}},
        "spec.worker.template.spec.containers[0].image",
        "FieldValueRequired",
    ),
    ("negative replicas", {"worker": role(-1)}, "spec.worker.replicas", "FieldValueInvalid"),
    ("elastic without workers", {"elastic": 1, "ps": role()}, "spec.worker", "FieldValueRequired"),
    (
        "elastic bounds crossed",
        {"elastic": 1, "worker": role(2, requests=3, limits=2)},
        "spec.worker.requests",
        "FieldValueInvalid",
    ),
    (
        "elastic out of bounds",
        {"elastic": 1, "worker": role(5, limits=4, requests=1)},
        "spec.worker.replicas",
        "FieldValueInvalid",
    ),
    ("unknown intranet", {"worker": role(), "intranet": "Carrier"}, "spec.intranet", "FieldValueNotSupported"),
    ("gloo 3", {"worker": role(), "withGloo": 3}, "spec.withGloo", "FieldValueInvalid"),
    (
        "data without a name",
        {"worker": role(), "sampleSetRef": {"mountPath": "/mnt"}},
        "spec.sampleSetRef.name",
        "FieldValueRequired",
    ),
    (
        "data of another namespace",
        {"worker": role(), "sampleSetRef": {"name": "a", "namespace": "victim", "mountPath": "/mnt"}},
        "spec.sampleSetRef.namespace",
        "FieldValueInvalid",
    ),
    (
        "relative mount",
        {"worker": role(), "sampleSetRef": {"name": "a", "mountPath": "mnt"}},
        "spec.sampleSetRef.mountPath",
        "FieldValueInvalid",
    ),
    (
        "gang larger than the job",
        {"worker": role(2), "schedulingPolicy": {"minAvailable": 3}},
        "spec.schedulingPolicy.minAvailable",
        "FieldValueInvalid",
    ),
    (
        "quantity",
        {"worker": role(2), "schedulingPolicy": {"minResources": {"cpu": "lots"}}},
        "spec.schedulingPolicy.minResources[cpu]",
        "FieldValueInvalid",
    ),
    ("more than Linux can list", {"worker": role(5_001)}, "spec.worker.replicas", "FieldValueInvalid"),
    ("more of two roles", {"worker": role(2_500), "ps": role(2_501)}, "spec", "FieldValueInvalid"),
    (
        "success policy",
        {"worker": role(), "successPolicy": "Any"},
        "spec.successPolicy",
        "FieldValueNotSupported",
    ),
    (
        "empty rule",
        {"worker": role(), "failurePolicy": {"rules": [{"action": "Fail"}]}},
        "spec.failurePolicy.rules[0]",
        "FieldValueRequired",
    ),
    (
        "exit code",
        {"worker": role(), "failurePolicy": {"rules": [{"action": "Fail", "exitCodes": ["9-3"]}]}},
        "spec.failurePolicy.rules[0].exitCodes[0]",
        "FieldValueInvalid",
    ),
    (
        "pattern",
        {"worker": role(), "failurePolicy": {"rules": [{"action": "Fail", "messagePattern": "("}]}},
        "spec.failurePolicy.rules[0].messagePattern",
        "FieldValueInvalid",
    ),
]


@pytest.mark.parametrize(("spec", "field", "reason"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_input_is_named_by_field_and_reason(spec: dict[str, Any], field: str, reason: str) -> None:
    found = paddlejob.validate(job(spec))
    assert (field, reason) in [(problem.field, problem.reason) for problem in found]
    paddlejob.normalise(job(spec))  # reading it never fails


@pytest.mark.parametrize(
    ("length", "replicas", "fits"), [(54, 10, True), (55, 10, False), (53, 11, True), (54, 11, False)]
)
def test_a_name_fits_when_its_longest_pod_name_is_a_dns_label(length: int, replicas: int, fits: bool) -> None:
    found = paddlejob.validate(job({"worker": role(replicas)}, name="a" * length))
    assert (found == []) == fits
    assert all(problem.reason == "FieldValueTooLong" for problem in found)


def test_a_dotted_name_cannot_be_a_host_name() -> None:
    assert [p.field for p in paddlejob.validate(job({"worker": role()}, name="a.b"))] == ["metadata.name"]


def test_a_job_without_spec_is_refused() -> None:
    assert [p.field for p in paddlejob.validate(paddlejob.decode({"metadata": {"name": "a"}}))] == ["spec"]


@pytest.mark.parametrize(
    ("written", "read"), [("Succeed", "Completed"), ("Terminated", "Failed"), ("Running", "Running"), (None, "")]
)
def test_phases_of_older_operators_are_understood(written: str | None, read: str) -> None:
    assert paddlejob.phase_of(written) == read


SCHEMA = root_schema(paddlejob.DECLARATION)
NUMBERS = st.none() | st.integers(0, 4)


@st.composite
def numbers_of_pods(draw: st.DrawFn) -> dict[str, Any]:
    """Specs that differ in numbers of pods alone."""
    spec: dict[str, Any] = {}
    for name in paddlejob.ROLES:
        if draw(st.booleans()):
            bounds = {"requests": draw(NUMBERS), "limits": draw(NUMBERS)}
            spec[name] = role(
                draw(st.integers(0, 4) | st.sampled_from([2_500, 2_501])),
                **{k: v for k, v in bounds.items() if v is not None},
            )
    policy = {"schedulingPolicy": {"minAvailable": draw(st.integers(0, 6))}}
    spec |= draw(st.sampled_from([{}, {"elastic": 1}, {"elastic": 0}]))
    return spec | draw(st.sampled_from([{}, policy, {"runPolicy": policy}, {"schedulingPolicy": {}, "runPolicy": {}}]))


@given(spec=numbers_of_pods())
def test_the_rules_of_the_definition_refuse_exactly_what_the_controller_would(spec: dict[str, Any]) -> None:
    refused = structural.validate({"metadata": {"name": "a"}, "spec": spec}, SCHEMA, {})
    problems = paddlejob.validate(job(spec))
    assert bool(refused) == bool(problems), (refused, problems)


@pytest.mark.parametrize("pods", [1, 10, 11, 101, 1001, 5000])
@pytest.mark.parametrize("name", paddlejob.ROLES)
def test_a_name_that_is_too_long_is_refused_at_creation_exactly_where_the_controller_would(
    name: str, pods: int
) -> None:
    for bounds in ({"replicas": pods}, {"replicas": 1, "limits": pods}):
        spec = {name: role(bounds.pop("replicas"), **bounds)}
        for length in range(45, 62):
            obj = {"metadata": {"name": "n" * length}, "spec": spec}
            refused = structural.validate(obj, SCHEMA, {})
            assert bool(refused) == bool(paddlejob.validate(paddlejob.decode(obj))), (length, bounds)
            stored = {**obj, "status": {"phase": "Failed"}}
            assert structural.validate(stored, SCHEMA, {}, old=stored) == [], "its status must stay writable"
