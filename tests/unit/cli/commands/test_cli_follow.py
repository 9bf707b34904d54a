"""Waiting and following while the server hangs up, forgets and restarts: nothing lost, nothing twice, no hammering."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.cli.render import follow
from paddlecloud.controllers.paddlejob.decision import startup
from paddlecloud.sdk import following, watching
from unit.cli.conftest import Pdc
from unit.cli.samples import PENDING, READY, make_job, pod_with
from unit.cli.stub import Stub


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "ROUND_SECONDS", 0.01)
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.05)


def test_a_watch_that_ends_is_begun_again(stub: Stub, pdc: Pdc) -> None:
    stub.endless_watches = False
    stub.add(pod_with({"phase": "Pending"}))
    lists = 0

    def change(method: str, path: str) -> None:
        nonlocal lists
        lists += 1
        if lists == 12:
            stub.add(pod_with(READY))

    stub.before = change
    assert pdc("wait", "pod/p", "--for=condition=Ready", "--timeout=60s").code == 0


def test_an_expired_watch_lists_again(stub: Stub, pdc: Pdc) -> None:
    stub.add(pod_with({"phase": "Pending"}))
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    stub.watch_events = [{"type": "ERROR", "object": gone}]

    def change(method: str, path: str) -> None:
        if not stub.watch_events:
            stub.before = lambda *_: None
            stub.add(pod_with(READY))

    stub.before = change
    assert pdc("wait", "pod/p", "--for=condition=Ready", "--timeout=60s").code == 0


def test_a_server_that_ends_every_watch_is_not_hammered(stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "ROUND_SECONDS", 0.2)
    stub.endless_watches = False
    stub.add(pod_with({"phase": "Pending"}))
    assert pdc("wait", "pod/p", "--for=condition=Ready", "--timeout=1s").code == 124
    assert len([path for path, query, _ in stub.asked("GET") if query.get("watch")]) <= 6


def test_a_deadline_holds_against_a_silent_server(stub: Stub, pdc: Pdc) -> None:
    stub.add(pod_with({"phase": "Pending"}))
    began = time.monotonic()
    assert pdc("wait", "pod/p", "--for=condition=Ready", "--timeout=300ms").code == 124
    assert time.monotonic() - began < 20, "the stub keeps watches open for thirty seconds"


def test_waiting_shows_what_it_waits_for(stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddlecloud.cli.commands.wait.FIRST_NEWS", 0.0)
    stub.add(pod_with({"phase": "Pending"}))
    result = pdc("wait", "pod/p", "--for=condition=Ready", "--timeout=1s")
    assert "pod/p: waiting for the scheduler" in result.err


def test_a_restarted_rank_is_followed_in_its_new_pod(stub: Stub, pdc: Pdc) -> None:
    job = make_job(stub, workers=1, servers=0)
    looks = 0

    def live_on(method: str, path: str) -> None:
        nonlocal looks
        if not path.endswith("/paddlejobs/wide"):
            return
        looks += 1
        name = "wide-worker-0"
        pod: dict[str, Any] = stub.objects[("pods", "default", name)]
        if pod["metadata"]["uid"] == "second":
            if looks >= 8:
                job["status"]["phase"] = "Completed"
        elif looks >= 3 and f"log-{name}" not in {thread.name for thread in threading.enumerate()}:
            # Logs are read by name: a reader of the first pod that is still at work would get those of the second.
            pod["metadata"]["uid"] = "second"
            stub.logs[name] = ["2026-01-01T00:01:00Z reborn"]

    stub.before = live_on
    result = pdc("logs", "-f", "wide")
    assert result.code == 0
    assert result.out.splitlines() == ["worker0 says 0", "worker0 says 1", "worker0 says 2", "reborn"]


def test_a_broken_stream_is_resumed_without_repeating_a_line(stub: Stub, pdc: Pdc) -> None:
    """The stub ends the stream after what there is; more arrives within the same second as the last line."""
    job = make_job(stub, workers=1, servers=0)
    looks = 0

    def live_on(method: str, path: str) -> None:
        nonlocal looks
        looks += path.endswith("/paddlejobs/wide")
        if looks == 3 and len(stub.logs["wide-worker-0"]) == 3:
            stub.logs["wide-worker-0"].append("2026-01-01T00:00:02.500000000Z late")
        elif looks == 8:
            job["status"]["phase"] = "Completed"

    stub.before = live_on
    result = pdc("logs", "-f", "wide")
    assert result.out.splitlines() == ["worker0 says 0", "worker0 says 1", "worker0 says 2", "late"]


def test_a_job_that_is_deleted_ends_the_following(stub: Stub, pdc: Pdc) -> None:
    make_job(stub, workers=1, servers=0)
    looks = 0

    def delete(method: str, path: str) -> None:
        nonlocal looks
        looks += path.endswith("/paddlejobs/wide")
        if looks == 4:
            stub.objects.pop(("paddlejobs", "default", "wide"), None)

    stub.before = delete
    result = pdc("logs", "-f", "wide")
    assert result.code == 103
    assert "deleted" in result.err


def test_apply_logs_ends_as_the_job_does(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    job = make_job(stub, workers=2, servers=0)
    path = tmp_path / "job.yaml"
    path.write_text("apiVersion: batch.paddlepaddle.org/v1\nkind: PaddleJob\nmetadata: {name: wide}\n")
    looks = 0

    def fail(method: str, path: str) -> None:
        nonlocal looks
        looks += path.endswith("/paddlejobs/wide")
        if looks == 5:
            job["status"]["phase"] = "Failed"

    stub.before = fail
    result = pdc("apply", "-f", str(path), "--logs")
    assert result.code == 100
    assert result.out.startswith("paddlejob.batch.paddlepaddle.org/wide unchanged\n")
    assert "worker-1 | worker1 says 2" in result.out


def test_apply_logs_wants_one_job(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    assert pdc("apply", "-f", str(path), "--logs").code == 2


def test_until_something_runs_the_reason_is_reported(stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "FIRST_NEWS", 0.0)
    monkeypatch.setattr(follow, "NEXT_NEWS", 0.0)
    job = make_job(stub, phase="Pending", workers=1, servers=0)
    stub.objects[("pods", "default", "wide-worker-0")]["status"] = PENDING
    looks = 0

    def go_on(method: str, path: str) -> None:
        nonlocal looks
        looks += path.endswith("/paddlejobs/wide")
        if looks == 4:
            job["status"]["phase"] = "Failed"

    stub.before = go_on
    result = pdc("logs", "-f", "wide")
    assert "no GPU" in result.err
    assert result.err.count("no GPU") == 1, "the same cause is printed once"


def build_image(stub: Stub) -> None:
    """A job whose image is built: further with every look at it, until it fails."""
    job = make_job(stub, phase="Starting", workers=1, servers=0)
    looks = 0

    def go_on(method: str, path: str) -> None:
        nonlocal looks
        looks += path.endswith("/paddlejobs/wide")
        waits = {
            "reason": "ContainerCreating",
            "message": f"installing paddle: {looks} MB of 100 MB, 9 s left for these",
        }
        container = {"name": "paddle", "state": {"waiting": waits}}
        pod = {"phase": "Pending", "containerStatuses": [container]}
        stub.objects[("pods", "default", "wide-worker-0")]["status"] = pod
        if looks == 4:
            job["status"]["phase"] = "Failed"

    stub.before = go_on


def test_elsewhere_the_progress_of_an_image_is_printed_rarely(
    stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "FIRST_NEWS", 0.0)
    monkeypatch.setattr(follow, "NEXT_NEWS", 0.0)
    build_image(stub)
    assert pdc("logs", "-f", "wide").err.count("9 s left for these") == 1
    monkeypatch.setattr(follow, "NEXT_PROGRESS", 0.0)
    build_image(stub)
    assert pdc("logs", "-f", "wide").err.count("9 s left for these") > 1


def test_on_a_terminal_the_progress_of_an_image_is_one_text_that_is_written_over(
    stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "FIRST_NEWS", 0.0)
    monkeypatch.setattr(follow, "NEXT_LIVE", 0.0)
    monkeypatch.setattr(follow, "is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "80")
    build_image(stub)
    err = pdc("logs", "-f", "wide").err
    texts = err.split("\r\x1b[K\x1b[A\x1b[2K")
    assert len(texts) >= 3, "a text of two rows is removed before the next one"
    assert all("9 s left for these" in text and "\n" not in text for text in texts[:-1])
    assert "MB of 100 MB" not in texts[-1], "nothing of it stays"


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "elsewhere"])
@pytest.mark.parametrize("reason", ["Unschedulable", "NotEnoughResources"])
def test_pods_that_fit_nowhere_are_followed_by_the_command_that_says_what_helps_once(
    stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch, reason: str, terminal: bool
) -> None:
    monkeypatch.setattr(follow, "FIRST_NEWS", 0.0)
    monkeypatch.setattr(follow, "NEXT_NEWS", 0.0)
    monkeypatch.setattr(follow, "NEXT_LIVE", 0.0)
    monkeypatch.setattr(follow, "is_terminal", lambda stream: terminal)
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.05)
    job = make_job(stub, phase="Pending", workers=1, servers=0)
    looks = 0

    def unscheduled(message: str) -> dict[str, object]:
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        return {"phase": "Pending", "conditions": [condition]}

    def go_on(method: str, path: str) -> None:
        nonlocal looks
        looks += path.endswith("/paddlejobs/wide")
        pod = stub.objects[("pods", "default", "wide-worker-0")]
        pod["status"] = unscheduled("no GPU" if looks < 4 else "no node")
        if looks == 7:
            job["status"]["phase"] = "Failed"

    stub.before = go_on
    lines = pdc("logs", "-f", "wide").err.splitlines()
    assert lines.count("next:  pdc explain pdj/wide") == 1
    assert "no GPU" in lines[lines.index("next:  pdc explain pdj/wide") - 1], "right after the cause"
    assert any("no node" in line for line in lines), "the cause is printed again when it changes"


def test_while_an_image_without_recipe_is_waited_for_the_command_that_builds_it_is_said_once(
    stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "FIRST_NEWS", 0.0)
    monkeypatch.setattr(follow, "NEXT_NEWS", 0.0)
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.05)
    job = make_job(stub, phase="Starting", workers=1, servers=0)
    looks = 0

    def go_on(method: str, path: str) -> None:
        nonlocal looks
        looks += path.endswith("/paddlejobs/wide")
        said = 'no recipe answers for image "nosuch:1". Write one, then: pdc image build -f image.yaml -t nosuch:1'
        waits = {"reason": "ErrImagePull" if looks % 2 else "ImagePullBackOff", "message": said}
        container = {"name": "paddle", "state": {"waiting": waits}}
        pod = {"phase": "Pending", "containerStatuses": [container]}
        stub.objects[("pods", "default", "wide-worker-0")]["status"] = pod
        if looks == 4:
            job["status"]["phase"] = "Failed"

    stub.before = go_on
    lines = pdc("logs", "-f", "wide").err.splitlines()
    limit = "(elsewhere; the job fails after 60 seconds unless the image has a recipe by then)"
    steps = [line for line in lines if line.startswith("next:")]
    assert steps == [f"next:  pdc image build -f image.yaml -t nosuch:1    {limit}"], lines


def test_the_seconds_that_a_job_waits_for_its_image_are_those_of_its_controller() -> None:
    limits = startup.PATIENCE[startup.NOT_FOUND], startup.PATIENCE[startup.PULL_FAILED]
    assert limits == (follow.IMAGE_SECONDS, follow.IMAGE_AGAIN_SECONDS)


def test_a_cause_that_is_no_lack_of_room_is_not_sent_to_explain(
    stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "FIRST_NEWS", 0.0)
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.05)
    job = make_job(stub, phase="Pending", workers=1, servers=0)
    job["status"]["message"] = "pods are created"
    stub.objects[("pods", "default", "wide-worker-0")]["status"] = {"phase": "Pending"}
    looks = 0

    def go_on(method: str, path: str) -> None:
        nonlocal looks
        looks += path.endswith("/paddlejobs/wide")
        if looks == 4:
            job["status"]["phase"] = "Failed"

    stub.before = go_on
    err = pdc("logs", "-f", "wide").err
    assert "pods are created" in err
    assert "pdc explain" not in err


def test_a_change_is_noticed_at_once_where_it_can_be_watched(
    stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LOOK_SECONDS", 100.0)
    job = make_job(stub, workers=1, servers=0)
    done = {**job, "status": {"phase": "Completed"}}

    def end(method: str, path: str) -> None:
        if path.endswith("/paddlejobs"):  # the watch begins
            job["status"] = done["status"]
            stub.watch_events = [{"type": "MODIFIED", "object": done}]

    stub.before = end
    began = time.monotonic()
    assert pdc("logs", "-f", "wide").code == 0
    assert time.monotonic() - began < 50
