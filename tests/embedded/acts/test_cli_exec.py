"""`pdc exec`: exit codes, input, bytes, terminals and interruptions, with real processes, beside kubectl."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from embedded.acts.acting import PDC, Pdc, background, pod
from harness import Kubectl, until


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_the_exit_code_of_the_program_is_passed_through(run: Pdc, kubectl: Kubectl, sleeper: str, code: int) -> None:
    command = ("exec", sleeper, "--", "sh", "-c", f"echo out; echo err >&2; exit {code}")
    ours = run(*command)
    assert (ours.returncode, ours.stdout) == (code, "out\n")
    assert ours.stderr.startswith("err\n")
    assert kubectl(*command, check=False).returncode == code


def test_input_is_passed_to_its_end(run: Pdc, sleeper: str) -> None:
    text = "line of input\n" * 20_000
    assert run("exec", "-i", sleeper, "--", "cat", input=text).stdout == text
    assert run("exec", sleeper, "--", "cat", input=text).stdout == "", "without -i there is no input"


def test_bytes_are_passed_as_they_are(environment: dict[str, str], namespace: str, sleeper: str) -> None:
    data = bytes(range(256)) * 4096
    done = subprocess.run(
        [*PDC, "-n", namespace, "exec", "-i", sleeper, "--", "cat"],
        input=data, env=environment, capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == data


def test_output_is_collected_as_json(run: Pdc, sleeper: str) -> None:
    done = run("exec", sleeper, "-o", "json", "--", "sh", "-c", "echo a; echo b >&2; exit 3")
    assert done.returncode == 3
    report = json.loads(done.stdout)
    assert (report["kind"], report["exitCode"], report["stdout"], report["stderr"]) == ("ExecReport", 3, "a\n", "b\n")


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["nobody", "--", "ls"], 3, 'no PaddleJob, pod, PaddleService or Workflow "nobody"'),
        (["sleeper", "-c", "nope", "--", "ls"], 5, "container nope is not valid"),
        (["sleeper", "-c", "nope", "--", "ls"], 5, "next:  pdc describe pod/sleeper"),
        (["sleeper", "ls", "-l"], 2, "next:  pdc exec sleeper -- ls -l"),
        (["sleeper"], 2, "no program to run"),
        (["sleeper", "ls"], 2, "comes after --"),
        (["sleeper", "--rank", "5", "--", "ls"], 3, "rank 5"),
    ],
)
def test_mistakes_of_exec(run: Pdc, sleeper: str, arguments: list[str], code: int, complaint: str) -> None:
    done = run("exec", *arguments)
    assert done.returncode == code
    assert complaint in done.stderr


def test_a_pod_that_has_ended_is_said_to_have(run: Pdc) -> None:
    run("apply", "-f", "-", "--wait", input=pod("short", "true"))
    done = run("exec", "short", "--", "ls")
    assert done.returncode == 4
    assert "Succeeded" in done.stderr


def test_a_terminal_works_with_its_size_and_its_keys(
    environment: dict[str, str], namespace: str, sleeper: str, tmp_path: Path
) -> None:
    child, screen = pty.fork()
    if child == 0:
        os.execve(PDC[0], [*PDC, "-n", namespace, "exec", "-it", sleeper, "--", "sh"], environment)
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    try:
        expect(screen, rb"[#$] $")
        os.write(screen, b"stty size; tty\n")
        expect(screen, rb"33 77\r\n/dev/pts/\d+")
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 99, 0, 0))
        os.write(screen, b'while [ "$(stty size)" != "44 99" ]; do sleep 0.05; done; echo resi""zed\n')
        expect(screen, rb"resized\r\n.*[#$] $")
        # Printed by the program itself: between its fork and its exec a shell would take the key, and lose it.
        os.write(screen, b'echo go""ing > /tmp/line; tail -f /tmp/line\n')
        expect(screen, rb"going\r\n")
        os.write(screen, b"\x03")  # ends tail, neither the shell nor pdc
        expect(screen, rb"[#$] $")
        os.write(screen, b"echo still-$((1+1))\n")
        expect(screen, rb"still-2")
        os.write(screen, b"exit 5\n")
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 5
    finally:
        os.close(screen)


def expect(screen: int, pattern: bytes, *, timeout: float = 30.0) -> bytes:
    seen = b""
    deadline = time.monotonic() + timeout
    while not re.search(pattern, seen):
        ready, _, _ = select.select([screen], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{pattern!r} did not appear in {seen!r}"
        seen += os.read(screen, 4096)
    return seen


def test_an_interrupted_exec_ends_its_program(
    run: Pdc, environment: dict[str, str], namespace: str, sleeper: str, tmp_path: Path
) -> None:
    rest = f"time.sleep(4321.{os.getpid()})"
    program = f"import time; print('begun', flush=True); {rest}"
    with background(
        environment, "-n", namespace, "exec", sleeper, "--", "python3", "-c", program, cwd=tmp_path
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
    until(lambda: rest not in run("exec", sleeper, "--", "ps", "axww").stdout)
