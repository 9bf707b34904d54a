"""What training programs import: `paddlecloud.data.report` in their own processes, against a real HTTP server."""

from __future__ import annotations

import hmac
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[3] / "src" / "paddlecloud" / "data" / "report.py"


class Controller:
    """Takes reports, as the controller does."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 204
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.bodies.append(json.loads(body))
                outer.headers.append({**self.headers, "path": self.path})
                self.send_response(outer.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Tests are quiet."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/report/default/job/0/worker/0"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def controller() -> Iterator[Controller]:
    controller = Controller()
    yield controller
    controller.server.shutdown()
    controller.server.server_close()


def run(program: str, tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter that has the module and nothing but the standard library."""
    folder = tmp_path / "paddlecloud" / "data"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.py").write_text(SOURCE.read_text())
    line = "from paddlecloud.data import report\n"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PADDLECLOUD"))}
    return subprocess.run(
        [sys.executable, "-S", "-c", line + program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**clean, "PYTHONPATH": str(tmp_path), **env},
    )


def listening(controller: Controller, **more: str) -> dict[str, str]:
    return {"PADDLECLOUD_REPORT_URL": controller.url, "PADDLECLOUD_REPORT_TOKEN": "s3cret", **more}


def test_a_program_shows_how_far_it_is_and_the_end_is_not_lost(controller: Controller, tmp_path: Path) -> None:
    program = """
report.INTERVAL = 60.0
for step in range(1, 101):
    report.progress(step=step, total=100, epoch=0, loss=1 / step, samples_per_second=64, acc=0.5)
report.checkpoint("/checkpoint/last", step=100)
"""
    done = run(program, tmp_path, **listening(controller))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(controller.bodies) <= 3, "what is reported within an interval is sent together"
    reported = {name: value for body in controller.bodies for name, value in body.items()}
    assert reported == {
        "step": 100,
        "totalSteps": 100,
        "epoch": 0,
        "loss": 0.01,
        "samplesPerSecond": 64.0,
        "metrics": {"acc": 0.5},
        "checkpoint": {"path": "/checkpoint/last", "step": 100},
    }
    for header, body in zip(controller.headers, controller.bodies, strict=True):
        proof = hmac.new(b"s3cret", f"{header['path']}\n{json.dumps(body)}".encode(), "sha256").hexdigest()
        assert header["Authorization"] == f"Signed {proof}"
        assert not any("s3cret" in value for value in header.values())
    assert {header["path"] for header in controller.headers} == {"/report/default/job/0/worker/0"}


def test_a_checkpoint_at_every_step_does_not_flood_the_controller(controller: Controller, tmp_path: Path) -> None:
    """It refuses a rank that reports more than twice a second; a refused rank pauses for longer and longer."""
    program = """
import time
until, step = time.monotonic() + 1.2, 0
while time.monotonic() < until:
    step += 1
    report.checkpoint("/checkpoint/last", step=step)
    time.sleep(0.01)
print(step)
"""
    done = run(program, tmp_path, **listening(controller))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(controller.bodies) <= 5, "at once, every half second, and the last word"
    assert controller.bodies[-1]["checkpoint"]["step"] == int(done.stdout)


@pytest.mark.parametrize("value", ["float('nan')", "None", "'soon'", "object()"])
def test_what_is_no_number_is_left_out_and_the_rest_is_sent(controller: Controller, tmp_path: Path, value: str) -> None:
    program = f"report.progress(step=3, loss={value}, acc={value}); report.flush(30)"
    done = run(program, tmp_path, **listening(controller))
    assert (done.returncode, done.stderr) == (0, "")
    assert controller.bodies == [{"step": 3}]


def test_outside_of_a_job_nothing_happens(tmp_path: Path) -> None:
    program = "report.progress(step=1); report.checkpoint('x'); report.heartbeat(); report.cache(hits=1, misses=2)\n"
    done = run(program + "import threading; print(report.enabled(), threading.active_count())", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False 1\n", "")


@pytest.mark.parametrize("status", [204, 401, 500])
def test_training_goes_on_whatever_the_controller_answers(controller: Controller, tmp_path: Path, status: int) -> None:
    controller.status = status
    done = run("report.progress(step=1); print('trained')", tmp_path, **listening(controller))
    assert (done.returncode, done.stdout, done.stderr) == (0, "trained\n", "")


def test_training_goes_on_and_ends_in_time_where_nobody_answers(tmp_path: Path) -> None:
    env = {"PADDLECLOUD_REPORT_URL": "http://127.0.0.1:9/report", "PADDLECLOUD_REPORT_TOKEN": "t"}
    # Other work of the machine counts for the clock on the wall; what the program itself waits for shows in the rest.
    program = """
import time
began, used = time.monotonic(), time.process_time()
[report.progress(step=i) for i in range(100000)]
report.flush()
print("trained", time.monotonic() - began < 10 + 20 * (time.process_time() - used))
"""
    done = run(program, tmp_path, **env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "trained True\n", "")


def test_what_could_not_be_sent_is_sent_later(controller: Controller, tmp_path: Path) -> None:
    program = """
import http.client
report.INTERVAL = 0.1
connect, refused = http.client.HTTPConnection, []
def refuse_once(*args, **options):
    if not refused:
        refused.append(True)
        raise ConnectionRefusedError
    return connect(*args, **options)
http.client.HTTPConnection = refuse_once
report.checkpoint("/checkpoint/last", step=5)
report.flush()
report.progress(step=6)
report.flush()
"""
    done = run(program, tmp_path, **listening(controller))
    assert (done.returncode, done.stderr) == (0, "")
    assert controller.bodies == [{"checkpoint": {"path": "/checkpoint/last", "step": 5}, "step": 6}]


def test_a_proxy_in_the_environment_is_not_asked(controller: Controller, tmp_path: Path) -> None:
    env = listening(controller, http_proxy="http://127.0.0.1:9", HTTP_PROXY="http://127.0.0.1:9")
    run("report.progress(step=1)", tmp_path, **env)
    assert controller.bodies == [{"step": 1}]


def test_a_child_made_by_fork_reports_for_itself(controller: Controller, tmp_path: Path) -> None:
    program = """
import os
report.progress(step=1)
report.flush()
if os.fork() == 0:
    report.progress(step=2)
    report.flush()
    os._exit(0)
os.wait()
"""
    done = run(program, tmp_path, **listening(controller))
    assert (done.returncode, done.stderr) == (0, "")
    assert controller.bodies == [{"step": 1}, {"step": 2}]


def test_a_hung_program_writes_its_stacks_to_its_log_and_reports_them(controller: Controller, tmp_path: Path) -> None:
    program = """
import threading
def waits_for_a_peer_that_never_comes():
    threading.Event().wait(2.5)
report.progress(step=7)
waits_for_a_peer_that_never_comes()
"""
    done = run(program, tmp_path, **listening(controller, PADDLECLOUD_HEARTBEAT_SECONDS="1"))
    assert done.returncode == 0
    assert "waits_for_a_peer_that_never_comes" in done.stderr
    stacks = [body["stacks"] for body in controller.bodies if "stacks" in body]
    assert len(stacks) == 1, "once per silence"
    assert "waits_for_a_peer_that_never_comes" in stacks[0]
    program, reporter = (stacks[0].index(words) for words in ("waits_for_a_peer_that_never_comes", "Current thread"))
    assert program < reporter, "what the program does comes before the thread that reports it"


def test_an_extension_that_hangs_holding_the_interpreter_still_shows_its_caller(
    controller: Controller, tmp_path: Path
) -> None:
    program = """
import ctypes
def calls_an_extension_that_hangs():
    ctypes.PyDLL(None).sleep(5)
report.progress(step=7)
calls_an_extension_that_hangs()
"""
    done = run(program, tmp_path, **listening(controller, PADDLECLOUD_HEARTBEAT_SECONDS="1"))
    assert done.returncode == 0
    assert "calls_an_extension_that_hangs" in done.stderr


def test_a_program_that_keeps_reporting_writes_no_stacks(controller: Controller, tmp_path: Path) -> None:
    program = """
import threading
for step in range(8):
    report.heartbeat()
    threading.Event().wait(0.3)
"""
    done = run(program, tmp_path, **listening(controller, PADDLECLOUD_HEARTBEAT_SECONDS="2"))
    assert (done.returncode, done.stderr) == (0, "")
    assert not any("stacks" in body for body in controller.bodies)
