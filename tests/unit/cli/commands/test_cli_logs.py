"""`pdc logs`: which pods and lines, merged by time, and how following ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from paddlecloud.cli.failures import UsageError
from paddlecloud.cli.objects.members import member, parse_ranks
from paddlecloud.sdk import members
from unit.cli.conftest import Pdc
from unit.cli.samples import make_job, make_service
from unit.cli.stub import Stub


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


def test_of_many_pods_that_have_not_started_some_are_named(stub: Stub, pdc: Pdc) -> None:
    make_job(stub, workers=9)
    for rank in range(2, 9):
        waiting = stub.objects[("pods", "default", f"wide-worker-{rank}")]
        state = {"waiting": {"reason": "ContainerCreating"}}
        waiting["status"] = {"phase": "Pending", "containerStatuses": [{"name": "paddle", "state": state}]}
    named = ", ".join(f"pod/wide-worker-{rank}" for rank in range(2, 6))
    assert pdc("logs", "wide", "--rank", "0-8").err == f"{named} and 3 more have not started\n"


def test_a_pod_that_was_deleted_meanwhile_does_not_hide_the_logs_of_the_others(stub: Stub, pdc: Pdc) -> None:
    make_service(stub)
    for gone, code in (("line-canary-pod", 0), ("line-default-pod", 3)):
        body = {"code": 404, "reason": "NotFound", "message": "gone", "details": {"kind": "pods", "name": gone}}
        stub.refuse[("GET", f"/api/v1/namespaces/default/pods/{gone}/log")] = (404, body)
        result = pdc("logs", "pds/line")
        assert (result.code, "default answers" in result.out) == (code, code == 0), result.err


def test_logs_of_a_container_that_waits_lead_to_what_it_waits_for(stub: Stub, pdc: Pdc) -> None:
    make_service(stub, endpoints=("default",))
    log = "/api/v1/namespaces/default/pods/line-default-pod/log"
    said = 'container "paddleserving" in pod "line-default-pod" is waiting to start: trying and failing to pull image'
    stub.refuse[("GET", log)] = (400, {"code": 400, "reason": "BadRequest", "message": said})
    result = pdc("logs", "line")
    assert (result.code, said in result.err) == (5, True)
    assert "next:  pdc describe paddleservice.serving.paddlepaddle.org/line" in result.err


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
    assert "detached; it goes on. To come back: pdc logs -f wide\n" in err
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


def test_a_job_that_failed_shows_the_pod_that_made_it_fail(stub: Stub, pdc: Pdc) -> None:
    job = make_job(stub, "Failed")
    job["status"]["failures"] = [{"pod": "wide-ps-0", "failureClass": "UserError"}]
    stub.add(job)
    result = pdc("logs", "wide", "--tail", "1")
    assert result.out == "ps0 says 2\n"
    assert result.err == "showing ps-0, which failed, of 3 pods; --all-ranks shows every one\n"
    assert pdc("logs", "wide", "--rank", "1", "--tail", "1").out == "worker1 says 2\n"


def test_pods_that_were_scaled_away_are_not_counted(stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch) -> None:
    make_job(stub, workers=1, servers=0)
    gone = {"metadata": {"name": "wide-worker-1", "uid": "gone", "labels": {"paddle-res-type": "worker"}}}

    async def kept(*_: object) -> list[members.Member]:
        return [members.member(gone)._replace(kept_in="/kept")]

    monkeypatch.setattr(members, "past_members_of", kept)
    assert pdc("logs", "wide").err == ""
