"""`pdc promote` while the controller writes the status, and while somebody else changes the spec."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api.names import ENDPOINT, SERVICE_LABEL, SERVING, SOURCE
from unit.cli.conftest import Pdc
from unit.cli.stub import Stub

PATH = "/apis/serving.paddlepaddle.org/v1/namespaces/default/paddleservices/flowers"
CONFIGURATION_GENERATION = "serving.knative.dev/configurationGeneration"
CONFLICT = (409, {"reason": "Conflict", "code": 409, "message": "the object has been modified"})


@pytest.fixture
def service(stub: Stub) -> dict[str, Any]:
    stub.kinds.append(("serving.paddlepaddle.org", "v1", "paddleservices", "PaddleService", True, ["pds"]))
    ready = {"type": "CanaryEndpointReady", "status": "True"}
    return stub.add(
        {
            "apiVersion": "serving.paddlepaddle.org/v1",
            "kind": "PaddleService",
            "metadata": {"name": "flowers", "generation": 3},
            "spec": {"default": {"tag": "1"}, "canary": {"tag": "2"}, "canaryTrafficPercent": 50},
            "status": {"conditions": [ready]},
        }
    )


def test_a_rollback_to_a_folder_of_a_node_says_that_it_is_served_as_it_is_now(
    stub: Stub, pdc: Pdc, service: dict[str, Any]
) -> None:
    """A cluster's folders are not seen by the command, nor by the controller."""
    stub.kinds.append(("serving.knative.dev", "v1", "revisions", "Revision", True, []))
    del service["spec"]["canary"]
    service["status"]["default"] = {"name": "flowers-default-2"}
    for number, model in (("1", "file:///models/flowers"), ("2", "flowers:v2")):
        labels = {f"{SERVING}/service": "flowers", ENDPOINT: "default", CONFIGURATION_GENERATION: number}
        meta = {
            "name": f"flowers-default-{number}",
            "labels": labels,
            "annotations": {SOURCE: f'{{"model": "{model}"}}'},
        }
        stub.add({"apiVersion": "serving.knative.dev/v1", "kind": "Revision", "metadata": meta})
    result = pdc("rollback", "flowers")
    assert result.code == 0, result.err
    assert "revision flowers-default-1 serves what is in /models/flowers now" in result.err


def changed_by_others(stub: Stub, service: dict[str, Any], *, generations: int, times: int) -> None:
    """The first patches come too late: each time somebody wrote the object before."""
    left = [times]

    def write(method: str, path: str) -> None:
        stub.refuse.clear()
        if method == "PATCH" and left[0]:
            left[0] -= 1
            service["metadata"]["generation"] += generations
            stub.add(service)
            stub.refuse[("PATCH", PATH)] = CONFLICT

    stub.before = write


def test_a_status_written_meanwhile_does_not_stop_it(stub: Stub, pdc: Pdc, service: dict[str, Any]) -> None:
    changed_by_others(stub, service, generations=0, times=3)
    result = pdc("promote", "flowers")
    assert result.code == 0, result.err
    spec = stub.objects["paddleservices", "default", "flowers"]["spec"]
    assert (spec["default"], spec.get("canary")) == ({"tag": "2"}, None)
    versions = [body["metadata"]["resourceVersion"] for _, _, body in stub.asked("PATCH")]
    assert len(versions) == len(set(versions)) == 4, "each attempt is based on what it read"


def test_a_spec_changed_meanwhile_is_not_written_over(stub: Stub, pdc: Pdc, service: dict[str, Any]) -> None:
    changed_by_others(stub, service, generations=1, times=1)
    result = pdc("promote", "flowers")
    assert (result.code, len(stub.asked("PATCH"))) == (4, 1)
    assert "modified" in result.err
    assert stub.objects["paddleservices", "default", "flowers"]["spec"]["canary"] == {"tag": "2"}


def test_it_gives_up_when_the_object_never_rests(stub: Stub, pdc: Pdc, service: dict[str, Any]) -> None:
    changed_by_others(stub, service, generations=0, times=1000)
    assert pdc("promote", "flowers").code == 4
    assert len(stub.asked("PATCH")) == 10


def test_a_broken_canary_is_refused_with_its_cause(stub: Stub, pdc: Pdc, service: dict[str, Any]) -> None:
    starting = {"type": "CanaryEndpointReady", "status": "Unknown", "reason": "Starting", "message": "it is starting"}
    service["status"]["conditions"] = [{"type": "Ready", "status": "True"}, starting]
    waiting = {"reason": "ErrImagePull", "message": "no recipe answers"}
    for name, endpoint, state in (("a", "default", {"running": {}}), ("b", "canary", {"waiting": waiting})):
        labels = {SERVICE_LABEL: "flowers", ENDPOINT: endpoint}
        status = {"phase": "Pending", "containerStatuses": [{"name": "c", "state": state}]}
        stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "status": status})
    result = pdc("promote", "flowers")
    assert result.code == 4
    assert "it is starting: b: container c waits: ErrImagePull: no recipe answers" in result.err
    verdict = pdc("explain", "pds/flowers").out
    assert verdict.startswith("pds/flowers: ok (CanaryFailed)\n")
    assert "ready; its canary failed: b: container c waits: ErrImagePull" in verdict
    late = pdc("wait", "pds/flowers", "--for=condition=CanaryEndpointReady", "--timeout=50ms")
    assert (late.code, "no recipe answers" in late.err) == (124, True)


def test_the_cause_that_the_condition_names_is_printed_once(stub: Stub, pdc: Pdc, service: dict[str, Any]) -> None:
    said = "Container c: it last exited with code 2: inference.json is damaged"
    failed = {"type": "CanaryEndpointReady", "status": "False", "reason": "CrashLoopBackOff", "message": said}
    service["status"]["conditions"] = [{"type": "Ready", "status": "True"}, failed]
    ended = {"exitCode": 2, "message": "inference.json is damaged"}
    state = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}}
    labels = {SERVICE_LABEL: "flowers", ENDPOINT: "canary"}
    status = {"phase": "Running", "containerStatuses": [{"name": "c", **state}]}
    stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "labels": labels}, "status": status})
    result = pdc("promote", "flowers")
    assert (result.code, result.err.count("is damaged")) == (4, 1)


@pytest.mark.parametrize(
    ("spec", "verb", "written"),
    [
        ({"model": "m:v2"}, "rollback", {"model": "m:v1", "default": None}),
        ({"default": {"model": "m:v2"}}, "rollback", {"model": None, "default": {"model": "m:v1"}}),
        ({"model": "m:v1", "canary": {"model": "m:v2"}}, "promote", {"model": "m:v2", "default": None}),
        ({"model": "m:v1", "canary": {"model": "n", "port": 9}}, "promote", {"default": {"model": "n", "port": 9}}),
    ],
)
def test_the_field_that_the_file_writes_is_the_one_that_is_changed(
    stub: Stub, pdc: Pdc, service: dict[str, Any], spec: dict[str, Any], verb: str, written: dict[str, Any]
) -> None:
    """Or the file would be applied later without an effect: spec.default wins over spec.model."""
    stub.kinds.append(("serving.knative.dev", "v1", "revisions", "Revision", True, []))
    service["spec"] = spec
    service["status"]["default"] = {"name": "flowers-default-2"}
    for number in ("1", "2"):
        labels = {f"{SERVING}/service": "flowers", ENDPOINT: "default", CONFIGURATION_GENERATION: number}
        source = {SOURCE: f'{{"model": "m:v{number}"}}'}
        meta = {"name": f"flowers-default-{number}", "labels": labels, "annotations": source}
        stub.add({"apiVersion": "serving.knative.dev/v1", "kind": "Revision", "metadata": meta})
    stub.add(service)
    result = pdc(verb, "flowers")
    assert result.code == 0, result.err
    found = stub.objects["paddleservices", "default", "flowers"]["spec"]
    assert {name: found.get(name) for name in ("model", "default")} == {"model": None, "default": None, **written}


@pytest.mark.parametrize("follow", [True, False])
def test_a_rollback_from_an_alias_that_was_followed_says_how_to_follow_it_again(
    stub: Stub, pdc: Pdc, service: dict[str, Any], follow: bool
) -> None:
    stub.kinds.append(("serving.knative.dev", "v1", "revisions", "Revision", True, []))
    service["spec"] = {"model": "line@production", "follow": follow}
    service["status"]["default"] = {"name": "flowers-default-2"}
    for number in ("1", "2"):
        labels = {f"{SERVING}/service": "flowers", ENDPOINT: "default", CONFIGURATION_GENERATION: number}
        source = {SOURCE: f'{{"model": "line:{number}"}}'}
        meta = {"name": f"flowers-default-{number}", "labels": labels, "annotations": source}
        stub.add({"apiVersion": "serving.knative.dev/v1", "kind": "Revision", "metadata": meta})
    result = pdc("rollback", "flowers")
    assert result.code == 0, result.err
    said = "no longer follows line@production; to follow it again: pdc serve line@production --name flowers --follow"
    assert (said in result.err) is follow


@pytest.mark.parametrize("default", [{"name": "flowers-default-3"}, {"name": "old", "latest": "flowers-default-3"}])
def test_a_rollback_goes_past_attempts_of_the_same_content(
    stub: Stub, pdc: Pdc, service: dict[str, Any], default: dict[str, str]
) -> None:
    """A retry makes another revision of what is there; and what serves may be another one than the spec's."""
    stub.kinds.append(("serving.knative.dev", "v1", "revisions", "Revision", True, []))
    service["spec"], service["status"]["default"] = {"model": "m:v2"}, default
    for number, model in (("1", "m:v1"), ("2", "m:v2"), ("3", "m:v2")):
        labels = {f"{SERVING}/service": "flowers", ENDPOINT: "default", CONFIGURATION_GENERATION: number}
        source = {SOURCE: f'{{"model": "{model}"}}'}
        meta = {"name": f"flowers-default-{number}", "labels": labels, "annotations": source}
        stub.add({"apiVersion": "serving.knative.dev/v1", "kind": "Revision", "metadata": meta})
    result = pdc("rollback", "flowers")
    assert result.code == 0, result.err
    assert "rolled back from flowers-default-3 to flowers-default-1" in result.out


FAILED = {"type": "DefaultEndpointReady", "status": "False", "reason": "CrashLoopBackOff", "observedGeneration": 3}
STARTING = {"type": "DefaultEndpointReady", "status": "Unknown", "observedGeneration": 3}
REFUSED = {"type": "Ready", "status": "False", "reason": "InvalidSpec", "observedGeneration": 3}
BESIDE, ALONE = {"name": "flowers-default-1", "latest": "flowers-default-3"}, {"name": "flowers-default-1"}
WELL = {"type": "DefaultEndpointReady", "status": "True", "observedGeneration": 2}


@pytest.mark.parametrize(
    ("conditions", "default", "canary", "said"),
    [
        ([FAILED], BESIDE, True, "-3 to flowers-default-1 (m:v1)"),
        ([FAILED], BESIDE, False, "-3 to flowers-default-1 (m:v1)"),
        ([STARTING], BESIDE, True, "canary withdrawn"),
        ([REFUSED, WELL], ALONE, False, "rolled back to flowers-default-1 (m:v1)"),
        ([REFUSED, WELL], ALONE, True, "rolled back to flowers-default-1 (m:v1)"),
        ([REFUSED], {"name": "flowers-default-3"}, False, "-3 to flowers-default-2 (m:v2)"),
    ],
)
def test_a_rollback_of_a_spec_that_failed_returns_to_the_revision_that_serves(
    stub: Stub,
    pdc: Pdc,
    service: dict[str, Any],
    conditions: list[dict[str, Any]],
    default: dict[str, str],
    canary: bool,
    said: str,
) -> None:
    """Between them is another attempt that failed; a canary is withdrawn only if the default is well."""
    stub.kinds.append(("serving.knative.dev", "v1", "revisions", "Revision", True, []))
    service["spec"] = {"default": {"model": "m:v3"}, **({"canary": {"model": "m:v9"}} if canary else {})}
    service["status"] = {"default": default, "conditions": conditions}
    for number in ("1", "2", "3"):
        labels = {f"{SERVING}/service": "flowers", ENDPOINT: "default", CONFIGURATION_GENERATION: number}
        source = {SOURCE: f'{{"model": "m:v{number}"}}'}
        meta = {"name": f"flowers-default-{number}", "labels": labels, "annotations": source}
        stub.add({"apiVersion": "serving.knative.dev/v1", "kind": "Revision", "metadata": meta})
    result = pdc("rollback", "flowers")
    assert result.code == 0, result.err
    assert said in result.out
