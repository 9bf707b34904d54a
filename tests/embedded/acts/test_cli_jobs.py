"""Jobs followed while they run: `pdc run`, `logs -f`, `retry`, and how far `top` says they are."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from embedded.acts.acting import Pdc, background, pod
from harness import Kubectl, until

TRAIN = """
import os, sys, time
print("rank", os.environ["PADDLE_TRAINER_ID"], "of", os.environ["PADDLE_TRAINERS_NUM"], "in", os.getcwd())
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""


def test_run_follows_every_rank_and_ends_as_the_job(run: Pdc, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    done = run("run", "--workers", "2", "--image", "python:3.11", "--", "python", "train.py")
    assert done.returncode == 0, done.stderr
    expected = [f"worker-{rank} | rank {rank} of 2 in {tmp_path}" for rank in (0, 1)]
    assert sorted(done.stdout.splitlines()) == expected
    failed = run("run", "--image", "python:3.11", "--", "python", "train.py", "9")
    assert failed.returncode == 100
    assert failed.stdout == f"rank 0 of 1 in {tmp_path}\n"
    assert "exit code 9" in failed.stderr
    assert run("get", "pdj", "-o", "name").stdout.split() == [
        "paddlejob.batch.paddlepaddle.org/train-1",
        "paddlejob.batch.paddlepaddle.org/train-2",
    ]
    again = run("logs", "train-1", "--all-ranks")
    assert sorted(again.stdout.splitlines()) == expected, "what was printed stays readable"


def test_ctrl_c_detaches_and_the_job_goes_on(
    run: Pdc, environment: dict[str, str], namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "wait.py").write_text(
        "import os, time\nprint('begun')\nwhile not os.path.exists('go'): time.sleep(0.05)\nprint('ended')\n"
    )
    words = ["-n", namespace, "run", "--image", "python:3.11", "--", "python", "wait.py"]
    with background(environment, *words, cwd=tmp_path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        assert child.returncode == 130
        assert err.endswith("detached; it goes on. To come back: pdc logs -f wait-1\n")
    (tmp_path / "go").touch()
    follow = run("logs", "-f", "wait-1")
    assert (follow.returncode, follow.stdout) == (0, "begun\nended\n")


def test_following_survives_restarts_without_losing_or_repeating_a_line(run: Pdc, tmp_path: Path) -> None:
    """Each life counts on from where the last one ended and then fails; the fourth succeeds."""
    (tmp_path / "count.py").write_text(
        "import os, sys, time\n"
        "begin = int(open('n').read()) if os.path.exists('n') else 0\n"
        "for n in range(begin, begin + 5): print('line', n); time.sleep(0.01)\n"
        "open('n', 'w').write(str(begin + 5))\n"
        "sys.exit(0 if begin == 15 else 1)\n"
    )
    done = run("run", "--retries", "3", "--image", "python:3.11", "--", "python", "count.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"line {n}" for n in range(20)]


def test_a_job_in_want_of_an_image_says_the_command_that_makes_it(run: Pdc, tmp_path: Path, namespace: str) -> None:
    """ErrImagePull names a file and a command: following both to the letter makes the pod run."""
    name = f"example.com/{namespace}:v1"
    run("apply", "-f", "-", input=pod("needy", "python3", "/app/hello.py").replace("python:3.11", name))

    def message() -> str:
        shown = json.loads(run("get", "pod", "needy", "-o", "json").stdout)
        states = shown.get("status", {}).get("containerStatuses") or [{}]
        return str(((states[0].get("state") or {}).get("waiting") or {}).get("message") or "")

    until(lambda: "pdc image build" in message(), timeout=60)
    reported = re.search(r"then: pdc image build -f (image.yaml) -t (\S+)", message())
    assert reported is not None
    (tmp_path / reported[1]).write_text("base: python\nfiles: {/app/hello.py: hello.py}\n")
    (tmp_path / "hello.py").write_text("print('at last')\n")
    built = run("image", "build", "-f", str(tmp_path / reported[1]), "-t", reported[2])
    assert built.returncode == 0, built.stderr
    assert run("wait", "pod/needy", "--for=finished", "--timeout=80s").returncode == 0
    assert run("logs", "needy").stdout == "at last\n"


@pytest.mark.timeout(400)
def test_a_job_whose_image_does_not_exist_fails_and_frees_its_room(
    run: Pdc, environment: dict[str, str], namespace: str, tmp_path: Path
) -> None:
    """After the 60 seconds of the docs. What helps is the last line."""
    words = ["-n", namespace, "run", "--name", "absent", "--workers", "2", "--image", "nosuch:1", "--", "true"]
    with background(environment, *words, cwd=tmp_path) as child:
        _, err = child.communicate(timeout=300)
    assert child.returncode == 100, err
    assert "absent-worker-0 failed: Image: no recipe answers for image" in err
    assert err.splitlines()[-1] == "next:  pdc image build -f image.yaml -t nosuch:1, then: pdc retry absent"

    def phases() -> list[str]:
        pods = json.loads(run("get", "pods", "-o", "json").stdout)["items"]
        return [str(pod["status"].get("phase")) for pod in pods]

    until(lambda: phases() == ["Failed", "Failed"])


def test_a_failed_job_is_run_again_under_its_name(run: Pdc, tmp_path: Path) -> None:
    (tmp_path / "second.py").write_text(
        "import os, sys\n"
        "once = os.path.exists('seen')\n"
        "open('seen', 'w').close()\n"
        "print('second' if once else 'first')\n"
        "sys.exit(0 if once else 1)\n"
    )
    first = run("run", "--name", "two", "--image", "python:3.11", "--", "python", "second.py")
    assert (first.returncode, first.stdout) == (100, "first\n")
    before = json.loads(run("get", "pdj/two", "-o", "json").stdout)
    assert run("retry", "two").returncode == 0
    again = run("logs", "-f", "two")
    assert (again.returncode, again.stdout) == (0, "second\n"), again.stderr
    after = json.loads(run("get", "pdj/two", "-o", "json").stdout)
    assert after["spec"] == before["spec"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"], "its history stays"
    assert after["status"]["phase"] == "Completed"
    assert [failure["failureClass"] for failure in after["status"]["failures"]] == ["UserError"]


def test_top_shows_how_far_a_job_says_it_is(run: Pdc, tmp_path: Path) -> None:
    (tmp_path / "far.py").write_text(
        "import time\n"
        "from paddlecloud.data import report\n"
        "report.progress(step=30, total=120, epoch=1, epochs=4, loss=0.25)\n"
        "report.flush()\n"
        "time.sleep(600)\n"
    )
    run("run", "-d", "--name", "far", "--image", "python:3.11", "--", "python", "far.py")

    def reported() -> dict[str, Any]:
        return dict(json.loads(run("top", "pdj", "far", "-o", "json").stdout)["items"][0])

    until(lambda: "progress" in reported(), timeout=60)
    assert (reported()["progress"], reported()["epoch"], reported()["loss"]) == ("30/120 (25%)", "1/4", 0.25)


def test_top_measures_what_kubectl_measures(run: Pdc, kubectl: Kubectl, sleeper: str, tmp_path: Path) -> None:
    run("apply", "-f", "-", "--wait", input=pod("spinner", "python3", "-c", "while True: pass"))

    def used() -> dict[str, int]:
        items = json.loads(run("top", "pods", "-o", "json").stdout)["items"]
        return {item["name"]: item["cpuMillicores"] for item in items}

    until(lambda: used().get("spinner", 0) > 50, timeout=60)
    assert used()["sleeper"] < 50
    shown = [line.split()[0] for line in run("top", "pods", "--no-headers").stdout.splitlines()]
    theirs = [line.split()[0] for line in kubectl("top", "pods", "--no-headers").stdout.splitlines()]
    assert shown == theirs == ["sleeper", "spinner"]
    ours, kubectls = run("top", "nodes").stdout.splitlines(), kubectl("top", "nodes").stdout.splitlines()
    assert [line.split()[0] for line in ours] == [line.split()[0] for line in kubectls]


def test_top_adds_up_a_job(run: Pdc, tmp_path: Path) -> None:
    run("run", "-d", "--name", "two", "--workers", "2", "--image", "python:3.11", "--", "python", "-c", "while True: 1")

    def used() -> dict[str, Any]:
        return dict(json.loads(run("top", "pdj", "two", "-o", "json").stdout)["items"][0])

    until(lambda: used().get("cpuMillicores", 0) > 100, timeout=60)
    assert (used()["pods"], used()["status"]) == (2, "Running")
