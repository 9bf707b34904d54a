"""`pdc describe`, `pdc explain` and `pdc events`: why an object is as it is, its fields, what happened to it."""

from __future__ import annotations

from typing import Any

import pytest

from unit.cli.conftest import Pdc
from unit.cli.samples import PENDING, READY, make_job, pod_with
from unit.cli.stub import Stub


def event(stub: Stub, name: str, *, about: dict[str, Any], kind: str = "Warning", **fields: Any) -> None:
    involved = {"kind": about["kind"], "name": about["metadata"]["name"], "uid": about["metadata"]["uid"]}
    body = {"type": kind, "reason": "FailedMount", "message": f"message of {name}", "involvedObject": involved}
    stub.add({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, **body, **fields})


def test_the_missing_claim_of_a_set_is_explained_by_the_set(stub: Stub, pdc: Pdc) -> None:
    job = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": "train"}}
    lacking = 'persistentvolumeclaim "words" not found'
    stub.add({**job, "status": {"phase": "Pending", "message": lacking}})
    assert lacking in pdc("explain", "pdj/train").out, "without such a set"
    stub.add(
        {
            "apiVersion": "batch.paddlepaddle.org/v1alpha1",
            "kind": "SampleSet",
            "metadata": {"name": "words"},
            "status": {"conditions": [{"type": "Valid", "status": "False", "message": "/data/x does not exist"}]},
        }
    )
    for command in ("explain", "describe"):
        assert "sampleset/words: Valid is False: /data/x does not exist" in pdc(command, "pdj/train").out


def test_describe_begins_with_why_and_ends_with_events(stub: Stub, pdc: Pdc) -> None:
    pod = stub.add(pod_with({**PENDING}))
    event(stub, "e1", about=pod, lastTimestamp="2026-01-01T00:00:00Z", count=3)
    lines = pdc("describe", "pod", "p").out.splitlines()
    assert lines[0] == "Why:          no node can take it: no GPU"
    assert lines[2].split() == ["Name:", "p"]
    assert "FailedMount" in lines[-1]
    assert "x3" in lines[-1]
    assert "Conditions:" in lines


def test_describe_a_job_shows_its_pods_and_their_events(stub: Stub, pdc: Pdc) -> None:
    make_job(stub, "Pending")
    pod = stub.objects[("pods", "default", "wide-worker-1")]
    pod["status"] = {"phase": "Pending"}
    event(stub, "e1", about=pod, lastTimestamp="2026-01-01T00:00:00Z")
    out = pdc("describe", "pdj/wide").out
    assert out.startswith("Why:          wide-worker-1: starting on node n1; last warning on pod/wide-worker-1")
    assert "wide-ps-0" in out
    assert "spec:\n  worker:\n    replicas: 2\n" in out


@pytest.mark.parametrize(
    ("command", "flags", "shows"),
    [
        ("describe", [], "wide-worker-0"),
        ("explain", [], "wide: ok"),
        ("wait", ["--for=finished"], "paddlejob.batch.paddlepaddle.org/wide finished"),
    ],
)
def test_a_job_needs_no_kind_before_its_name(stub: Stub, pdc: Pdc, command: str, flags: list[str], shows: str) -> None:
    make_job(stub, phase="Completed")
    result = pdc(command, "wide", *flags)
    assert result.code == 0, result.err
    assert shows in result.out
    misspelt = pdc(command, "paddlejbs", *flags)
    assert misspelt.code == 3
    assert 'no resource type "paddlejbs"; did you mean "paddlejobs"?' in misspelt.err


def test_explain_of_a_word_that_is_nothing_says_that_no_job_has_that_name(stub: Stub, pdc: Pdc) -> None:
    make_job(stub)
    result = pdc("explain", "vol")
    assert result.code == 3
    assert 'there is no PaddleJob vol in namespace default, and the server has no resource type "vol"' in result.err


@pytest.mark.parametrize(
    ("word", "offered"),
    [
        ("po.", ["po.spec"]),
        ("pods.spec.co", ["pods.spec.containers"]),
        ("po.spec.containers.i", ["po.spec.containers.image"]),
    ],
)
def test_fields_are_completed(documented: Stub, pdc: Pdc, word: str, offered: list[str]) -> None:
    assert [one for one in pdc("__complete", "--", "explain", word).out.split() if one in offered] == offered


HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b1A\rforged \u202e"


@pytest.mark.parametrize(
    "words",
    [
        ("describe", "pod", "p"),
        ("explain", "pod/p"),
        ("events",),
        ("get", "pods", "-o", "custom-columns=A:.metadata.annotations.a"),
        ("wait", "pod/p", "--for=condition=Ready", "--timeout=50ms"),
        ("describe", "pod", HOSTILE),
    ],
    ids=["describe", "explain", "events", "columns", "wait", "a failure"],
)
def test_control_characters_in_text_of_others_are_shown_and_not_carried_out(
    stub: Stub, pdc: Pdc, words: tuple[str, ...]
) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": HOSTILE}
    pod = pod_with({"phase": "Pending", "conditions": [condition]})
    pod["metadata"]["annotations"] = {"a": HOSTILE}
    event(stub, "e", about=stub.add(pod), message=HOSTILE, reason=HOSTILE)
    result = pdc(*words)
    shown = result.out + result.err
    assert "]0;title" in shown
    assert [char for char in shown if not char.isprintable() and char not in "\n\t"] == []


def test_what_is_asked_for_as_raw_text_stays_as_it_is(stub: Stub, pdc: Pdc) -> None:
    pod = pod_with(READY)
    pod["metadata"]["annotations"] = {"a": HOSTILE}
    stub.add(pod)
    assert pdc("get", "pod", "p", "-o", "jsonpath={.metadata.annotations.a}").out == HOSTILE + "\n"
    shown = pdc("get", "pod", "p", "-o", "json")
    assert shown.json()["metadata"]["annotations"]["a"] == HOSTILE
    assert [char for char in shown.out if not char.isprintable() and char != "\n"] == []


def test_describe_hides_secrets(stub: Stub, pdc: Pdc) -> None:
    stub.kinds.append(("", "v1", "secrets", "Secret", True, []))
    stub.add({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": "aHVudGVyMg=="}})
    out = pdc("describe", "secret", "s").out
    assert "aHVudGVyMg" not in out
    assert "password" in out


def test_describe_without_the_right_to_see_events(stub: Stub, pdc: Pdc) -> None:
    stub.add(pod_with(READY))
    stub.refuse[("GET", "/api/v1/namespaces/default/events")] = (403, {"reason": "Forbidden", "message": "no"})
    assert pdc("describe", "pod", "p").code == 0


def test_describe_for_programs(stub: Stub, pdc: Pdc) -> None:
    make_job(stub)
    item = pdc("describe", "pdj", "wide", "-o", "json").json()["items"][0]
    assert item["object"]["kind"] == "PaddleJob"
    assert item["why"]["state"] == "ok"
    assert [pod["name"] for pod in item["pods"]] == ["wide-worker-0", "wide-worker-1", "wide-ps-0"]


def test_describing_nothing_is_not_found(stub: Stub, pdc: Pdc) -> None:
    assert pdc("describe", "pods").code == 3
    assert pdc("describe", "pod", "none").code == 3


def test_explain_of_a_job_that_lacks_a_package_says_what_mends_it(stub: Stub, pdc: Pdc) -> None:
    text = "ModuleNotFoundError: No module named 'sklearn'"
    failure = {"pod": "x-worker-0", "failureClass": "UserError", "exitCode": 1, "message": text}
    status = {
        "phase": "Failed",
        "reason": "UserError",
        "message": "x-worker-0 failed: UserError",
        "failures": [failure],
    }
    job = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": "x"}, "status": status}
    stub.add(job)
    assert "\n  next:  if it is a package and no file of yours: an --image that has scikit-learn\n" in (
        pdc("explain", "pdj/x").out
    )
    chinese = pdc("explain", "pdj/x", "--lang", "zh").out
    assert chinese.startswith("pdj/x：失败（UserError）\n  已失败：x-worker-0 失败：UserError\n")


def test_explain_gives_a_verdict_in_both_languages(stub: Stub, pdc: Pdc) -> None:
    stub.add(pod_with(PENDING))
    assert pdc("explain", "pod/p").out == "pod/p: waiting (Unschedulable)\n  no node can take it: no GPU\n"
    assert "没有节点" in pdc("explain", "pod/p", "--lang", "zh").out
    verdict = pdc("explain", "pod/p", "-o", "json").json()
    assert (verdict["kind"], verdict["reason"], verdict["state"]) == ("Verdict", "Unschedulable", "waiting")


SCHEMAS = {
    "io.x.Pod": {
        "description": "A pod.",
        "type": "object",
        "properties": {
            "spec": {"allOf": [{"$ref": "#/components/schemas/io.x.PodSpec"}], "description": "What is wanted."}
        },
        "required": ["spec"],
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
    },
    "io.x.PodSpec": {
        "type": "object",
        "properties": {
            "containers": {"type": "array", "items": {"$ref": "#/components/schemas/io.x.Container"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "self": {"$ref": "#/components/schemas/io.x.PodSpec"},
        },
    },
    "io.x.Container": {
        "type": "object",
        "properties": {"image": {"type": "string", "description": "Where it comes from.", "enum": ["a", "b"]}},
        "required": ["image"],
    },
}


@pytest.fixture
def documented(stub: Stub) -> Stub:
    stub.openapi = {"api/v1": {"components": {"schemas": SCHEMAS}}}
    return stub


@pytest.mark.parametrize(
    ("subject", "lines"),
    [
        ("pods", ["KIND: Pod", "VERSION: v1", "A pod.", "spec <PodSpec> -required-", "What is wanted."]),
        ("po.spec", ["FIELD: spec <PodSpec> -required-", "containers <[]Container>", "labels <map[string]string>"]),
        (
            "pod.spec.containers.image",
            ["FIELD: image <string> -required-", "Where it comes from.", "Possible values: a, b"],
        ),
    ],
)
def test_explain_documents_fields(documented: Stub, pdc: Pdc, subject: str, lines: list[str]) -> None:
    out = [" ".join(line.split()) for line in pdc("explain", subject).out.splitlines()]
    for line in lines:
        assert line in out


def test_explain_recursive_ends_on_schemas_that_contain_themselves(documented: Stub, pdc: Pdc) -> None:
    out = pdc("explain", "pod", "--recursive").out
    assert out.count("self\t<PodSpec>") > 3
    assert "image\t<string>" in out


def test_explain_guesses_misspelt_fields(documented: Stub, pdc: Pdc) -> None:
    result = pdc("explain", "pod.spec.contaners")
    assert result.code == 3
    assert 'did you mean "containers"?' in result.err
    assert "next:  pdc explain pod.spec" in result.err


def test_explain_fields_for_programs(documented: Stub, pdc: Pdc) -> None:
    report = pdc("explain", "pod.spec", "-o", "json").json()
    assert report["type"] == "PodSpec"
    assert [field["name"] for field in report["fields"]] == ["containers", "labels", "self"]


def test_events_oldest_first(stub: Stub, pdc: Pdc) -> None:
    pod = stub.add(pod_with(READY))
    other = stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}})
    event(stub, "new", about=pod, lastTimestamp="2026-01-02T00:00:00Z")
    event(stub, "old", about=other, eventTime="2026-01-01T00:00:00.000000Z", kind="Normal")
    out = pdc("events").out.splitlines()
    assert out[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert [line.split()[-1] for line in out[1:]] == ["old", "new"]
    assert pdc("events", "--for", "pod/q").out.count("message of") == 1
    assert pdc("events", "--types", "warning").out.count("message of") == 1
    assert pdc("events", "-o", "json").json()["items"][0]["metadata"]["name"] == "old"
    assert pdc("events", "-A", "--no-headers").out.startswith("default ")


def test_events_of_a_deleted_object_of_the_same_name_are_left_out(stub: Stub, pdc: Pdc) -> None:
    pod = stub.add(pod_with(READY))
    event(stub, "mine", about=pod, lastTimestamp="2026-01-02T00:00:00Z")
    event(
        stub, "its", about={**pod, "metadata": {**pod["metadata"], "uid": "gone"}}, lastTimestamp="2026-01-01T00:00:00Z"
    )
    name = f"pod/{pod['metadata']['name']}"
    assert [line.split()[-1] for line in pdc("events", "--for", name, "--no-headers").out.splitlines()] == ["mine"]
    del stub.objects["pods", "default", pod["metadata"]["name"]]
    found = pdc("events", "--for", name, "--no-headers").out.splitlines()
    assert [line.split()[-1] for line in found] == ["its", "mine"], "of what is gone, all that is known"


LATE = {"reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the specified deadline"}


@pytest.mark.parametrize("words", [("events", "--no-headers"), ("describe", "pod", "p")])
def test_a_pod_that_its_controller_ended_has_no_deadline_in_its_events(
    stub: Stub, pdc: Pdc, words: tuple[str, ...]
) -> None:
    why = "on purpose: its job is Completed"
    pod = stub.add(pod_with({"phase": "Failed"}, annotations={"paddlepaddle.org/ended": why}))
    event(stub, "e", about=pod, lastTimestamp="2026-01-02T00:00:00Z", **LATE)
    line = pdc(*words).out.splitlines()[-1]
    assert line.split()[1:4] == ["Normal", "Ended", "pod/p"]
    assert line.endswith(why)


def test_a_deadline_that_somebody_set_stays_in_the_events(stub: Stub, pdc: Pdc) -> None:
    pod = stub.add(pod_with({"phase": "Failed"}))
    event(stub, "e", about=pod, lastTimestamp="2026-01-02T00:00:00Z", **LATE)
    lines = [pdc("events").out.splitlines()[-1], pdc("describe", "pod", "p").out.splitlines()[-1]]
    stub.refuse[("GET", "/api/v1/namespaces/default/pods")] = (403, {"reason": "Forbidden", "message": "no"})
    lines.append(pdc("events").out.splitlines()[-1])
    assert [line.split()[1:4] for line in lines] == [["Warning", "DeadlineExceeded", "pod/p"]] * 3


def test_no_events_is_said_on_stderr(stub: Stub, pdc: Pdc) -> None:
    result = pdc("events")
    assert (result.code, result.out, result.err) == (0, "", "No events found in default.\n")


def test_a_bound_sample_set_is_explained_by_its_cache_server_that_fails(stub: Stub, pdc: Pdc) -> None:
    stub.kinds.append(("batch.paddlepaddle.org", "v1alpha1", "samplesets", "SampleSet", True, []))
    stub.add(
        {
            "apiVersion": "batch.paddlepaddle.org/v1alpha1",
            "kind": "SampleSet",
            "metadata": {"name": "set"},
            "status": {"phase": "Bound", "message": "waiting for the first cache server"},
        }
    )
    crashed = {"terminated": {"exitCode": 1, "message": "PermissionError: /cache"}}
    state = {"name": "runtime", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    stub.add(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "set-runtime-0", "labels": {"paddlepaddle.org/sampleset": "set"}},
            "spec": {"nodeName": "n1"},
            "status": {"phase": "Running", "containerStatuses": [{**state, "lastState": crashed}]},
        }
    )
    head, text = pdc("explain", "sampleset/set").out.splitlines()
    assert head == "sampleset/set: failed (CrashLoopBackOff)"
    assert "set-runtime-0: container runtime ended with exit code 1: PermissionError: /cache" in text


def test_the_last_valid_spec_of_a_job_is_shown_only_where_it_is_another(stub: Stub, pdc: Pdc) -> None:
    job = make_job(stub)
    for last, shown in ((job["spec"], False), ({"worker": {"replicas": 9}}, True)):
        job["status"]["lastValidSpec"] = last
        assert ("lastValidSpec" in pdc("describe", "pdj/wide").out) is shown
