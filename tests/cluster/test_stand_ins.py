"""Images that are not what their name promises say so in real containers too, whatever command the pod gives them."""

from __future__ import annotations

import pytest

from harness import Kubectl, Target, until

from .test_base import pod

pytestmark = [pytest.mark.core, pytest.mark.timeout(300)]

IMAGE = "quay.io/coreos/etcd:v3.5.0"  # the smallest of them
NOTE = "note: this image is a stand-in: etcd 3.5.1 "
PYTHON = ("python", "-c", "import time; print('out', flush=True); time.sleep(60)")
BASH = ("/bin/bash", "-c", "python -c \"print('out')\" && sleep 60")


@pytest.mark.parametrize("command", [PYTHON, BASH, ()], ids=["python", "bash", "its own"])
def test_the_log_says_so_once_and_nothing_else_does(kubectl: Kubectl, server: Target, command: tuple[str, ...]) -> None:
    server.offer(IMAGE)
    kubectl("create", "-f", "-", input=pod("suite", *command, image=IMAGE))
    kubectl("wait", "--for=condition=Ready", "pod/suite", "--timeout=90s", timeout=100)
    # A container engine reads standard output and standard error apart: their lines may change places in the log.
    lines = until(lambda: kubectl("logs", "suite").stdout.splitlines(), lambda lines: len(lines) > 1)
    notes = [line for line in lines if "stand-in" in line]
    assert len(notes) == 1
    assert notes[0].startswith(NOTE)
    for program in (("python", "-c", "print('answer')"), ("/bin/bash", "-c", "echo answer")):
        beside = kubectl("exec", "suite", "--", *program)
        assert beside.stdout == "answer\n"
        assert "stand-in" not in beside.stderr  # kubectl itself may write a line of its WebSocket client there
    kubectl("delete", "pod", "suite")
