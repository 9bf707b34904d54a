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
def test_the_first_line_of_the_log_says_so_and_nothing_else_does(
    kubectl: Kubectl, server: Target, command: tuple[str, ...]
) -> None:
    server.offer(IMAGE)
    kubectl("create", "-f", "-", input=pod("suite", *command, image=IMAGE))
    kubectl("wait", "--for=condition=Ready", "pod/suite", "--timeout=90s", timeout=100)
    until(lambda: len(kubectl("logs", "suite").stdout.splitlines()) > 1)
    first, *rest = kubectl("logs", "suite").stdout.splitlines()
    assert first.startswith(NOTE)
    assert not [line for line in rest if "stand-in" in line]
    for program in (("python", "-c", "print('answer')"), ("/bin/bash", "-c", "echo answer")):
        beside = kubectl("exec", "suite", "--", *program)
        assert (beside.stdout, beside.stderr) == ("answer\n", "")
    kubectl("delete", "pod", "suite")
