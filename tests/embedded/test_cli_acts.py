"""Commands that reach into running pods: exec, cp, port-forward, run and logs, with real processes, beside kubectl."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness import Completed, Kubectl, Target, until

Pdc = Callable[..., Completed]
PDC = (sys.executable, "-m", "paddlecloud.cli.main")


@pytest.fixture
def environment(server: Target, tmp_path: Path) -> dict[str, str]:
    return {**server.env, "LC_ALL": "C.UTF-8"}


@pytest.fixture
def run(environment: dict[str, str], namespace: str, tmp_path: Path) -> Pdc:
    """pdc in the test's namespace and in a folder of its own; failures are returned, not raised."""

    def call(*arguments: str, input: str | None = None, cwd: Path = tmp_path) -> Completed:
        return subprocess.run(
            [*PDC, "-n", namespace, *arguments],
            env=environment,
            cwd=cwd,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=90,
        )

    return call


def pod(name: str, *command: str, **spec: Any) -> str:
    container = {"name": "main", "image": "python:3.11", "command": list(command)}
    spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **spec}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


@pytest.fixture
def sleeper(run: Pdc) -> str:
    made = run("apply", "-f", "-", "--wait", "--timeout", "60s", input=pod("sleeper", "sleep", "600"))
    assert made.returncode == 0, made.stderr
    return "sleeper"


@contextmanager
def background(environment: dict[str, str], *arguments: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [*PDC, *arguments], env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate(timeout=60)


# exec


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
        (["nobody", "--", "ls"], 3, 'no PaddleJob and no pod "nobody"'),
        (["sleeper", "-c", "nope", "--", "ls"], 5, "container nope is not valid"),
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
        os.write(screen, b"sh -c 'echo go\"\"ing; sleep 60'\n")  # a shell that forks may lose the key
        expect(screen, rb"going\r\n")
        os.write(screen, b"\x03")  # ends the sleep, neither the shell nor pdc
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


# cp


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / "sub" / "empty").mkdir(parents=True)
    (folder / "a b.txt").write_text("spaces\n")
    (folder / "sub" / "big").write_bytes(os.urandom(3_000_000))
    (folder / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "sub" / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("sub/run.sh")
    (folder / "-dash").write_text("-\n")
    return folder


def contents(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        mode = path.lstat().st_mode & 0o777
        found[name] = os.readlink(path) if path.is_symlink() else (mode, path.read_bytes() if path.is_file() else None)
    return found


def test_a_folder_goes_there_and_back_unchanged(run: Pdc, sleeper: str, tree: Path, tmp_path: Path) -> None:
    assert run("cp", str(tree), f"{sleeper}:/tmp/copy").returncode == 0
    assert run("cp", f"{sleeper}:/tmp/copy", "back").returncode == 0
    assert contents(tmp_path / "back") == contents(tree)


def test_a_directory_takes_the_copy_in(run: Pdc, sleeper: str, tree: Path, tmp_path: Path) -> None:
    run("cp", str(tree / "a b.txt"), f"{sleeper}:/tmp/")
    run("cp", str(tree / "a b.txt"), f"{sleeper}:/tmp")
    assert run("exec", sleeper, "--", "cat", "/tmp/a b.txt").stdout == "spaces\n"
    (tmp_path / "here").mkdir()
    run("cp", f"{sleeper}:/tmp/a b.txt", "here")
    run("cp", f"{sleeper}:/tmp/a b.txt", "here/other")
    assert contents(tmp_path / "here").keys() == {"a b.txt", "other"}


def test_copies_agree_with_kubectl(
    run: Pdc, kubectl: Kubectl, namespace: str, sleeper: str, tree: Path, tmp_path: Path
) -> None:
    run("cp", str(tree / "sub"), f"{sleeper}:/tmp/sub")
    kubectl("cp", f"{namespace}/{sleeper}:/tmp/sub", str(tmp_path / "theirs"))
    run("cp", f"{namespace}/{sleeper}:/tmp/sub", "ours")
    theirs, ours = files(tmp_path / "theirs"), files(tmp_path / "ours")
    assert ours == theirs
    assert (tmp_path / "ours" / "run.sh").stat().st_mode & 0o777 == 0o755, "which kubectl forgets"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_links_that_lead_out_are_left_out(run: Pdc, sleeper: str, tmp_path: Path) -> None:
    run("exec", sleeper, "--", "sh", "-c", "mkdir /tmp/evil && ln -s /etc /tmp/evil/out && echo x > /tmp/evil/in")
    done = run("cp", f"{sleeper}:/tmp/evil", "got")
    assert done.returncode == 0
    assert "left out" in done.stderr
    assert contents(tmp_path / "got").keys() == {"in"}


@pytest.mark.parametrize(
    ("source", "destination", "code", "complaint"),
    [
        ("sleeper:/tmp/nothing", "here", 1, "No such file"),
        ("nothing", "sleeper:/tmp/x", 1, "there is no nothing"),
        ("tree/sub", "sleeper:/no/such/folder/x", 1, "No such file"),
        ("sleeper:/etc/hostname", "no/such/folder/x", 1, "there is no directory"),
        ("tree", "other", 2, "one side"),
        ("sleeper:/a", "sleeper:/b", 2, "one side"),
        ("sleeper:", "x", 2, "names no pod or no path"),
        ("nobody:/x", "x", 3, "nobody"),
    ],
)
def test_mistakes_of_cp(
    run: Pdc, sleeper: str, tree: Path, source: str, destination: str, code: int, complaint: str
) -> None:
    done = run("cp", source, destination)
    assert done.returncode == code, done.stderr
    assert complaint in done.stderr


# port-forward

ECHO = """
import socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
Server(("0.0.0.0", 7777), Echo).serve_forever()
"""


@contextmanager
def forwarding(
    environment: dict[str, str], namespace: str, *arguments: str, cwd: Path
) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    with background(environment, "-n", namespace, "port-forward", *arguments, cwd=cwd) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        found = re.match(r"Forwarding from 127\.0\.0\.1:(\d+) -> \d+", line)
        assert found, line
        yield int(found[1]), child


def test_bytes_flow_both_ways_over_many_connections(
    run: Pdc, environment: dict[str, str], namespace: str, tmp_path: Path
) -> None:
    serve(run, "echo", 7777, "python3", "-c", ECHO)
    data = os.urandom(2_000_000)
    with forwarding(environment, namespace, "echo", ":7777", cwd=tmp_path) as (port, child):
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
                link.settimeout(30)
                assert echoed(link, data) == data
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130


def serve(run: Pdc, name: str, port: int, *command: str, **meta: Any) -> None:
    """A pod that listens on a port, ready when this returns."""
    manifest = json.loads(pod(name, *command))
    manifest["metadata"].update(meta)
    container = manifest["spec"]["containers"][0]
    container["ports"] = [{"name": "main", "containerPort": port}]
    container["readinessProbe"] = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    made = run("apply", "-f", "-", "--wait", "--timeout", "60s", input=json.dumps(manifest))
    assert made.returncode == 0, made.stderr


def echoed(link: socket.socket, data: bytes) -> bytes:
    import threading

    sender = threading.Thread(target=link.sendall, args=(data,))
    sender.start()
    got = bytearray()
    while len(got) < len(data):
        piece = link.recv(65536)
        assert piece, f"ended after {len(got)} bytes"
        got += piece
    sender.join(30)
    return bytes(got)


def test_names_and_services_find_their_port(
    run: Pdc, environment: dict[str, str], namespace: str, tmp_path: Path
) -> None:
    serve(run, "web", 8000, "python3", "-m", "http.server", "8000", labels={"app": "web"})
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front"},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "plain", "port": 80, "targetPort": "main"}]},
    }
    assert run("apply", "-f", "-", input=json.dumps(service)).returncode == 0
    for words in (["web", ":main"], ["svc/front", ":80"], ["svc/front", ":plain"]):
        with (
            forwarding(environment, namespace, *words, cwd=tmp_path) as (port, _),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer,
        ):
            assert answer.status == 200


def test_a_port_where_nobody_listens_ends_the_connection_and_not_the_forwarding(
    run: Pdc, environment: dict[str, str], namespace: str, sleeper: str, tmp_path: Path
) -> None:
    with forwarding(environment, namespace, sleeper, ":9", cwd=tmp_path) as (port, child):
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
                link.settimeout(30)
                link.sendall(b"anybody?")
                assert link.recv(10) == b""
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        assert "port 9" in err


def test_a_port_that_is_taken_here_is_a_conflict(run: Pdc, sleeper: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("port-forward", sleeper, f"{taken.getsockname()[1]}:80")
    assert done.returncode == 4
    assert "cannot listen" in done.stderr


# run and logs

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
        assert "pdc logs -f paddlejob.batch.paddlepaddle.org/wait-1" in err
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


def test_a_job_in_want_of_an_image_says_the_command_that_makes_it(
    run: Pdc, platform_data: Path, environment: dict[str, str], namespace: str
) -> None:
    """ErrImagePull names a folder and a command: following both to the letter makes the pod run."""
    name = f"example.com/{namespace}:v1"
    run("apply", "-f", "-", input=pod("needy", "python3", "/app/hello.py").replace("python:3.11", name))

    def message() -> str:
        shown = json.loads(run("get", "pod", "needy", "-o", "json").stdout)
        states = shown.get("status", {}).get("containerStatuses") or [{}]
        return str(((states[0].get("state") or {}).get("waiting") or {}).get("message") or "")

    until(lambda: "pdc image build" in message(), timeout=60)
    told = re.search(r"write (\S+)/<name>/image.yaml .*then: pdc (image build \S+)", message())
    assert told is not None
    folder = Path(told[1]) / namespace
    folder.mkdir(parents=True)
    assert folder.is_relative_to(platform_data)
    (folder / "image.yaml").write_text(f"names: [{name}]\nbase: python\nfiles: {{/app/hello.py: hello.py}}\n")
    (folder / "hello.py").write_text("print('at last')\n")
    built = run(*told[2].split())
    assert built.returncode == 0, built.stderr
    assert run("wait", "pod/needy", "--for=finished", "--timeout=80s").returncode == 0
    assert run("logs", "needy").stdout == "at last\n"


# top


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


# retry


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
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["status"]["phase"] == "Completed"
    assert "failures" not in after["status"]


def test_top_shows_how_far_a_job_says_it_is(run: Pdc, tmp_path: Path) -> None:
    (tmp_path / "far.py").write_text(
        "import time\n"
        "from paddlecloud.data import report\n"
        "report.progress(step=30, total=120, epoch=1, epochs=4, loss=0.25)\n"
        "report.flush()\n"
        "time.sleep(600)\n"
    )
    run("run", "-d", "--name", "far", "--image", "python:3.11", "--", "python", "far.py")

    def told() -> dict[str, Any]:
        return dict(json.loads(run("top", "pdj", "far", "-o", "json").stdout)["items"][0])

    until(lambda: "progress" in told(), timeout=60)
    assert (told()["progress"], told()["epoch"], told()["loss"]) == ("30/120 (25%)", "1/4", 0.25)
