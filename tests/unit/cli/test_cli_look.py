"""wait, describe, explain, events, logs and the small patches."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.cli.failures import UsageError
from paddlecloud.cli.objects.members import member, parse_ranks
from unit.cli.conftest import Pdc
from unit.cli.samples import PENDING, READY, make_job, make_service, pod_with
from unit.cli.stub import Stub


def event(stub: Stub, name: str, *, about: dict[str, Any], kind: str = "Warning", **fields: Any) -> None:
    involved = {"kind": about["kind"], "name": about["metadata"]["name"], "uid": about["metadata"]["uid"]}
    body = {"type": kind, "reason": "FailedMount", "message": f"message of {name}", "involvedObject": involved}
    stub.add({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, **body, **fields})


# wait


ENOUGH = {0: "60s", 8: "1s", 124: "50ms"}
"""Time to wait, by how it ends: what is there is seen at once, however long that takes; the rest lasts as long."""


@pytest.mark.parametrize(
    ("goal", "status", "code"),
    [
        ("condition=Ready", READY, 0),
        ("condition=ready", READY, 0),
        ("condition=Ready=True", READY, 0),
        ("condition=Ready=False", READY, 124),
        ("condition=Initialized", READY, 124),
        ("condition=Ready", PENDING, 8),
        ("jsonpath={.status.phase}=Running", READY, 0),
        ("jsonpath=.status.phase=Running", READY, 0),
        ("jsonpath={.status.phase}=Pending", READY, 124),
        ("jsonpath={.status.podIP}", READY, 124),
        ("jsonpath={.status.phase}", READY, 0),
        ("create", READY, 0),
        ("delete", READY, 124),
    ],
)
def test_wait_on_what_is_there(stub: Stub, pdc: Pdc, goal: str, status: dict[str, Any], code: int) -> None:
    stub.add(pod_with(status))
    assert pdc("wait", "pod/p", f"--for={goal}", f"--timeout={ENOUGH[code]}").code == code


@pytest.mark.parametrize(
    ("goal", "right"),
    [("condition=Completed", 'did you mean "Succeeded"?'), ("condition=PodReady", 'did you mean "PodsReady"?')],
)
def test_a_condition_that_jobs_never_have_is_refused_of_a_finished_job_too(
    stub: Stub, pdc: Pdc, goal: str, right: str
) -> None:
    job = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": "train"}}
    stub.add({**job, "status": {"phase": "Completed"}})
    result = pdc("wait", "pdj/train", f"--for={goal}")
    assert right in result.err
    assert result.code == 2


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


def test_wait_sees_changes(stub: Stub, pdc: Pdc) -> None:
    stub.add(pod_with({"phase": "Pending"}))
    stub.watch_events = [{"type": "MODIFIED", "object": pod_with(READY)}]
    result = pdc("wait", "pod/p", "--for=condition=Ready", "--timeout=60s")
    assert (result.code, result.out) == (0, "pod/p condition met\n")


def test_wait_for_deletion(stub: Stub, pdc: Pdc) -> None:
    stub.add(pod_with(READY))
    stub.watch_events = [{"type": "DELETED", "object": pod_with(READY)}]
    assert pdc("wait", "pod/p", "--for=delete", "--timeout=60s").code == 0
    assert pdc("wait", "pod/never-was", "--for=delete", "--timeout=60s").code == 0


@pytest.mark.parametrize(
    ("phase", "timeout", "code"),
    [("Completed", "60s", 0), ("Failed", "60s", 100), ("Running", "0", 101), ("Running", "50ms", 124)],
)
def test_wait_for_the_end_of_a_job(stub: Stub, pdc: Pdc, phase: str, timeout: str, code: int) -> None:
    make_job(stub, phase)
    assert pdc("wait", "pdj/wide", "--for=finished", f"--timeout={timeout}").code == code


def test_a_job_whose_pods_find_no_node_is_exit_8(stub: Stub, pdc: Pdc) -> None:
    make_job(stub, "Pending", workers=1, servers=0)
    stub.objects[("pods", "default", "wide-worker-0")]["status"] = PENDING
    result = pdc("wait", "pdj/wide", "--for=finished", f"--timeout={ENOUGH[8]}")
    assert result.code == 8
    assert "wide-worker-0 is not scheduled: no GPU" in result.err


def test_a_job_deleted_while_waited_for_is_cancelled(stub: Stub, pdc: Pdc) -> None:
    job = make_job(stub)
    stub.watch_events = [{"type": "DELETED", "object": job}]
    assert pdc("wait", "pdj/wide", "--for=finished", "--timeout=60s").code == 103


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["pod/none", "--for=condition=Ready"], 3),
        (["pdj/none", "--for=finished"], 3),
        (["pods", "-l", "a=b", "--for=condition=Ready"], 3),
        (["pods", "--for=condition=Ready"], 2),
        (["pod/p", "--for=nonsense"], 2),
        (["pod/p", "--for=condition="], 2),
        (["pod/p"], 2),
        (["pod/p", "--for=create", "--timeout=soon"], 2),
    ],
)
def test_waits_that_cannot_succeed_end_at_once(stub: Stub, pdc: Pdc, arguments: list[str], code: int) -> None:
    assert pdc("wait", *arguments).code == code


def ended(kind: str, **status: Any) -> dict[str, Any]:
    versions = {"PaddleJob": "batch.paddlepaddle.org/v1", "SampleJob": "batch.paddlepaddle.org/v1alpha1"}
    version = versions.get(kind, "batch/v1" if kind == "Job" else "v1")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "generation": 2}, "status": status}


FAILED_JOB = {"conditions": [{"type": "Failed", "status": "True", "message": "BackoffLimitExceeded"}]}


@pytest.mark.parametrize(
    ("obj", "goal", "says"),
    [
        (ended("PaddleJob", phase="Failed", message="worker 0"), "jsonpath={.status.phase}=Completed", "failed"),
        (ended("PaddleJob", phase="Failed", message="worker 0"), "jsonpath=.status.phase=Completed", "worker 0"),
        (ended("PaddleJob", phase="Failed", message="worker 0"), "condition=Succeeded", "worker 0"),
        (ended("PaddleJob", phase="Failed", message="worker 0"), "condition=Running=True", "worker 0"),
        (ended("PaddleJob", phase="Completed"), "condition=Failed", "it has succeeded"),
        (ended("SampleJob", phase="Failed", message="no such set"), "jsonpath={.status.phase}=Succeeded", "no such"),
        (ended("Job", **FAILED_JOB), "condition=Complete", "BackoffLimitExceeded"),
        (ended("Pod", phase="Failed", reason="Evicted"), "condition=Ready", "Evicted"),
        (ended("Pod", phase="Succeeded"), "jsonpath={.status.phase}=Running", "it has succeeded"),
    ],
)
def test_a_wait_for_a_status_that_cannot_come_any_more_ends_at_once(
    stub: Stub, pdc: Pdc, obj: dict[str, Any], goal: str, says: str
) -> None:
    stub.add(obj)
    result = pdc("wait", f"{obj['kind'].lower()}/x", f"--for={goal}", "--timeout=60s")
    assert result.code == 100
    assert says in result.out + result.err


@pytest.mark.parametrize(
    ("change", "goal"),
    [
        ({}, "jsonpath={.metadata.labels.done}=yes"),
        ({}, "delete"),
        ({"metadata": {"name": "x", "generation": 3}}, "condition=Succeeded"),
        ({"metadata": {"name": "x", "annotations": {"paddlepaddle.org/retry-at": "now"}}}, "condition=Succeeded"),
        ({"status": {"phase": "Restarting"}}, "condition=Succeeded"),
    ],
    ids=["a label", "its deletion", "another spec", "another run", "it goes on"],
)
def test_a_wait_for_what_may_still_come_goes_on(stub: Stub, pdc: Pdc, change: dict[str, Any], goal: str) -> None:
    stub.add({**ended("PaddleJob", phase="Failed", observedGeneration=2), **change})
    assert pdc("wait", "paddlejob/x", f"--for={goal}", f"--timeout={ENOUGH[124]}").code == 124


def test_wait_on_all_and_for_programs(stub: Stub, pdc: Pdc) -> None:
    for name in ("a", "b"):
        stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "status": READY})
    report = pdc("wait", "pods", "--all", "--for=condition=Ready", "-o", "json").json()
    assert [item["object"] for item in report["items"]] == ["pod/a", "pod/b"]
    assert {item["state"] for item in report["items"]} == {"met"}


# describe and explain


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
    assert pdc("get", "pod", "p", "-o", "json").json()["metadata"]["annotations"]["a"] == HOSTILE


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


# events


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


def test_no_events_is_said_on_stderr(stub: Stub, pdc: Pdc) -> None:
    result = pdc("events")
    assert (result.code, result.out, result.err) == (0, "", "No events found in default.\n")


# logs


def test_logs_of_a_job_are_those_of_rank_0(stub: Stub, pdc: Pdc) -> None:
    make_job(stub)
    result = pdc("logs", "wide")
    assert result.out == "worker0 says 0\nworker0 says 1\nworker0 says 2\n"
    assert result.err == "showing worker-0 of 3 pods; --all-ranks shows every one\n"


def test_ranks_are_merged_by_time_and_prefixed(stub: Stub, pdc: Pdc) -> None:
    make_job(stub)
    out = pdc("logs", "wide", "--all-ranks").out.splitlines()
    assert len(out) == 9
    assert out[0] in ("worker-0 | worker0 says 0", "ps-0     | ps0 says 0")
    assert [line[-1] for line in out] == sorted(line[-1] for line in out), "in the order of time"
    assert out[2] == "worker-1 | worker1 says 0"


@pytest.mark.parametrize("subject", ["pds/line", "line"])
def test_logs_of_a_service_are_those_of_all_its_pods(stub: Stub, pdc: Pdc, subject: str) -> None:
    make_service(stub)
    result = pdc("logs", subject)
    assert result.code == 0, result.err
    assert result.out.splitlines() == [
        "line-default-pod | default answers",
        "line-canary-pod  | canary answers",
    ]
    asked = [query["container"] for path, query, _ in stub.asked("GET") if path.endswith("/log")]
    assert asked == ["paddleserving", "paddleserving"]


def test_a_pod_that_has_not_started_does_not_hide_the_logs_of_the_others(stub: Stub, pdc: Pdc) -> None:
    make_service(stub)
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    canary = stub.objects[("pods", "default", "line-canary-pod")]
    canary["status"] = {"phase": "Pending", "containerStatuses": [{"name": "paddleserving", "state": waiting}]}
    log = "/api/v1/namespaces/default/pods/line-canary-pod/log"
    stub.refuse[("GET", log)] = (400, {"code": 400, "reason": "BadRequest", "message": "waiting to start"})
    result = pdc("logs", "pds/line")
    assert (result.code, result.out) == (0, "default answers\n")
    assert result.err == "pod/line-canary-pod has not started\n"


def test_logs_of_a_service_that_is_scaled_to_zero_say_so(stub: Stub, pdc: Pdc) -> None:
    make_service(stub, endpoints=())
    result = pdc("logs", "pds/line")
    assert result.code == 3
    assert "has no pods: it sleeps: without requests it is scaled to zero" in result.err


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["wide", "--rank", "1"], ["worker1 says 0", "worker1 says 1", "worker1 says 2"]),
        (["wide", "--rank", "0-1", "--tail", "1"], ["worker-0 | worker0 says 2", "worker-1 | worker1 says 2"]),
        (["wide-ps-0", "--tail", "1"], ["ps0 says 2"]),
        (["pod/wide-ps-0", "--tail", "1"], ["ps0 says 2"]),
        (["pdj/wide", "--tail", "1", "--timestamps"], ["2026-01-01T00:00:02.000000000Z worker0 says 2"]),
    ],
)
def test_which_lines(stub: Stub, pdc: Pdc, arguments: list[str], lines: list[str]) -> None:
    make_job(stub)
    assert pdc("logs", *arguments).out.splitlines() == lines


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


def test_the_note_of_a_stand_in_image_is_printed_once_for_all_ranks(stub: Stub, pdc: Pdc) -> None:
    make_job(stub, servers=0)
    note = "note: image suite:v1 here is a stand-in: a small program for a suite"
    for name, lines in stub.logs.items():
        stub.logs[name] = [f"2026-01-01T00:00:00Z {note}", *lines]
    printed = pdc("logs", "wide", "--all-ranks").out
    assert printed.count(note) == 1
    assert printed.splitlines()[0].endswith(note)
    assert len(printed.splitlines()) == 7, "nothing else is left out"
    assert pdc("logs", "wide", "--all-ranks", "-o", "json").out.count(note) == 2, "programs get every line"


def test_given_no_restart_then_logs_of_the_previous_run_say_where_to_look(stub: Stub, pdc: Pdc) -> None:
    make_job(stub)
    result = pdc("logs", "wide", "--previous")
    assert result.code == 3
    assert "has no previous run" in result.err
    assert "a restart of the whole job makes new pods" in result.err
    assert "next:  pdc logs wide" in result.err


def test_log_flags_reach_the_server(stub: Stub, pdc: Pdc) -> None:
    make_job(stub)
    for kind, _, name in list(stub.objects):
        if kind == "pods":
            status = {"name": "side", "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}}
            stub.objects[kind, "default", name]["status"]["containerStatuses"] = [status]
    pdc("logs", "wide", "--since", "5m", "--previous", "-c", "side")
    _, query, _ = next(request for request in stub.asked("GET") if request[0].endswith("/log"))
    assert query == {"timestamps": "true", "container": "side", "previous": "true", "sinceSeconds": "300"}


def test_log_lines_for_programs(stub: Stub, pdc: Pdc) -> None:
    make_job(stub)
    first = json.loads(pdc("logs", "wide", "-o", "json").out.splitlines()[0])
    assert first["kind"] == "LogLine"
    assert (first["role"], first["rank"], first["message"]) == ("worker", 0, "worker0 says 0")


@pytest.mark.parametrize(("phase", "code"), [("Completed", 0), ("Failed", 100)])
def test_following_a_job_ends_with_it(stub: Stub, pdc: Pdc, phase: str, code: int) -> None:
    make_job(stub, phase)
    result = pdc("logs", "wide", "-f", "--all-ranks")
    assert result.code == code
    assert len(result.out.splitlines()) == 9, "every line once, although the job ended before we looked"


def test_ctrl_c_detaches(stub: Stub) -> None:
    make_job(stub)
    child = subprocess.Popen(
        [sys.executable, "-m", "paddlecloud.cli.main", "logs", "-f", "wide"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "worker0 says 0\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "detached" in err
    assert "Traceback" not in err
    assert [method for method, *_ in stub.requests if method != "GET"] == []


def test_logs_that_are_not_there(stub: Stub, pdc: Pdc) -> None:
    assert pdc("logs", "none").code == 3
    make_job(stub, workers=1, servers=0)
    assert pdc("logs", "wide", "--rank", "7").code == 3
    assert pdc("logs", "wide", "--rank", "x").code == 2
    del stub.objects[("pods", "default", "wide-worker-0")]
    result = pdc("logs", "wide")
    assert result.code == 3
    assert "has no pods" in result.err


@pytest.mark.parametrize(("text", "ranks"), [("0", {0}), ("0,3-5", {0, 3, 4, 5}), ("2-2", {2}), (" 1 , 2", {1, 2})])
def test_ranks(text: str, ranks: set[int]) -> None:
    assert parse_ranks(text) == ranks


@pytest.mark.parametrize("text", ["", "a", "3-1", "-1", "1,", "1--2", "9999999"])
def test_ranks_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_ranks(text)


@pytest.mark.parametrize(
    ("name", "labels", "tag"),
    [
        ("j-worker-3", {"paddle-res-type": "worker"}, "worker-3"),
        ("my-ps-0", {}, "ps-0"),
        ("web-7d9f-x2k", {}, "web-7d9f-x2k"),
        ("web-0", {}, "web-0"),
    ],
)
def test_pods_know_their_rank(name: str, labels: dict[str, str], tag: str) -> None:
    assert member({"metadata": {"name": name, "labels": labels}}).tag == tag


# scale, suspend, resume


def test_scale_patches_the_scale_subresource(stub: Stub, pdc: Pdc) -> None:
    stub.add({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}})
    assert pdc("scale", "deploy/web", "--replicas", "3").out == "deployment.apps/web scaled\n"
    path, _, body = stub.asked("PATCH")[0]
    assert path == "/apis/apps/v1/namespaces/default/deployments/web/scale"
    assert body == {"spec": {"replicas": 3}}


def running_job(stub: Stub, **status: Any) -> dict[str, Any]:
    job = make_job(stub)
    job["status"] |= {
        "startTime": "2026-01-01T00:00:00Z",
        "ps": {"refs": [{"name": "wide-ps-0"}]},
        "worker": {"refs": [{"name": f"wide-worker-{index}"} for index in range(2)]},
        **status,
    }
    return job


WIDE = "paddlejob.batch.paddlepaddle.org/wide"
RESTART = f"{WIDE}: it is not elastic: all its pods (wide-ps-0, wide-worker-0, wide-worker-1) restart; "


def test_given_a_running_job_that_is_not_elastic_then_scale_says_what_restarts(stub: Stub, pdc: Pdc) -> None:
    job = running_job(stub)
    result = pdc("scale", "wide", "--replicas", "3")
    assert (result.code, result.out) == (0, f"{WIDE} scaled\n")
    assert result.err == f"{RESTART}they report no checkpoint, so training begins anew unless the program loads one\n"
    job["status"]["checkpoint"] = {"path": "/ckpt/last", "step": 300}
    job["spec"]["worker"]["replicas"] = 2
    known = pdc("scale", "wide", "--replicas", "3").err
    assert known == f"{RESTART}training goes on from the last checkpoint reported (/ckpt/last, step 300)\n"


@pytest.mark.parametrize(
    ("spec", "status", "replicas"),
    [
        ({"elastic": 1}, {}, 3),
        ({"suspend": True}, {"phase": "Suspended"}, 3),
        ({}, {"phase": "Pending", "startTime": None}, 3),
        ({}, {}, 2),
    ],
    ids=["elastic", "suspended", "not started", "the same number"],
)
def test_given_nothing_that_restarts_then_scale_says_nothing_of_it(
    stub: Stub, pdc: Pdc, spec: dict[str, Any], status: dict[str, Any], replicas: int
) -> None:
    running_job(stub, **status)["spec"] |= spec
    result = pdc("scale", "wide", "--replicas", str(replicas))
    assert (result.code, result.err) == (0, "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("flags", "answer", "code"), [([], "y\n", 0), ([], "n\n", 103), ([], "", 103), (["-y"], "", 0)]
)
def test_given_a_terminal_then_scale_asks_before_a_restart(
    stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch, flags: list[str], answer: str, code: int
) -> None:
    running_job(stub)
    screen = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", screen)
    assert pdc("scale", "wide", "--replicas", "3", *flags).code == code
    assert RESTART in screen.getvalue()
    assert (f"Scale {WIDE} to 3? [y/N]" in screen.getvalue()) == (not flags)
    assert len(stub.asked("PATCH")) == (1 if code == 0 else 0)


def test_given_a_file_with_another_number_then_apply_says_what_restarts(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    job = running_job(stub)
    changed = {**job, "spec": {"worker": {"replicas": 3, "template": {}}}}
    del changed["status"]
    (tmp_path / "job.yaml").write_text(json.dumps(changed))
    assert RESTART in pdc("apply", "-f", str(tmp_path / "job.yaml")).err


def test_an_object_that_is_no_job_is_scaled_in_a_phase_that_would_be_the_end_of_a_job(stub: Stub, pdc: Pdc) -> None:
    stub.kinds.append(("example.com", "v1", "databases", "Database", True, []))
    stub.add(
        {"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": "d"}, "status": {"phase": "Error"}}
    )
    result = pdc("scale", "databases/d", "--replicas", "3")
    assert (result.code, result.out) == (0, "database.example.com/d scaled\n")


@pytest.mark.parametrize(
    ("command", "subject", "patch", "says"),
    [
        ("suspend", "wide", {"spec": {"suspend": True}}, "suspended"),
        ("resume", "wide", {"spec": {"suspend": False}}, "resumed"),
        ("suspend", "job/plain", {"spec": {"suspend": True}}, "suspended"),
    ],
)
def test_suspend_and_resume(stub: Stub, pdc: Pdc, command: str, subject: str, patch: dict[str, Any], says: str) -> None:
    make_job(stub)["spec"]["suspend"] = command == "resume"
    stub.add({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"}})
    result = pdc(command, subject)
    assert result.code == 0
    assert says in result.out
    assert stub.asked("PATCH")[0][2] == patch


@pytest.mark.parametrize(("command", "suspended"), [("suspend", True), ("resume", False), ("resume", None)])
def test_a_job_that_is_as_asked_for_is_unchanged(stub: Stub, pdc: Pdc, command: str, suspended: bool | None) -> None:
    make_job(stub)["spec"]["suspend"] = suspended
    result = pdc(command, "wide")
    assert (result.code, result.out) == (0, "paddlejob.batch.paddlepaddle.org/wide unchanged\n")
    assert stub.asked("PATCH") == []


def test_a_job_that_its_run_policy_suspends_is_resumed(stub: Stub, pdc: Pdc) -> None:
    make_job(stub, phase="Suspended")["spec"]["runPolicy"] = {"suspend": True}
    assert pdc("resume", "wide").out == "paddlejob.batch.paddlepaddle.org/wide resumed\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["suspend", "pod/x"], 2),
        (["retry", "job/x"], 2),
        (["suspend", "none"], 3),
        (["scale", "none", "--replicas", "1"], 3),
        (["scale", "deploy/none", "--replicas", "1"], 3),
        (["scale", "deploy/x", "--replicas", "-1"], 2),
        (["scale", "deploy/x"], 2),
    ],
)
def test_acts_that_cannot_be(stub: Stub, pdc: Pdc, arguments: list[str], code: int) -> None:
    assert pdc(*arguments).code == code


# watching


def test_get_watch_prints_changes_until_interrupted(stub: Stub) -> None:
    stub.add(pod_with({"phase": "Pending"}))
    stub.watch_events = [{"type": "MODIFIED", "object": pod_with({"phase": "Running"}, resourceVersion="200")}]
    child = subprocess.Popen(
        [sys.executable, "-m", "paddlecloud.cli.main", "get", "pods", "-w"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    lines = [child.stdout.readline().split() for _ in range(3)]
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert lines == [["NAME", "STATUS"], ["p", "Pending"], ["p", "Running"]]
    assert child.returncode == 130
    assert "Traceback" not in err
