"""A computer made of namespaces: its own network, mounts, host name, IPC and processes.

Each machine is held by one `pause` process, the first of its process namespace. Whatever runs on the machine dies with
it, and with the last process go mounts, interfaces and packet filters: switching off is one `kill -9`, and nothing is
left to undo. A machine is found again by the arguments of its holder, never by a file that a crash could leave wrong.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .errors import HarnessError, with_log
from .layout import Layout

_MARK = "paddlecloud-machine"
_RESTARTING = 'while :; do "$@"; echo "$1 exited $?; it is started again"; sleep 1; done'
_NAMESPACES = ("--mount", "--net", "--uts", "--ipc", "--pid")


class Machine:
    def __init__(self, layout: Layout, name: str) -> None:
        self.layout = layout
        self.name = name
        self.folder = layout.machine(name)

    @property
    def holder(self) -> int | None:
        """The process id, outside, of the machine's first process."""
        return running_machines(self.layout).get(self.name)

    def boot(self, pause: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self.layout.log(self.name, "boot")
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [
            "unshare", *_NAMESPACES, "--fork", "--kill-child", "--mount-proc", "--propagation", "private",
            str(pause), _MARK, str(self.layout.run), self.name,
        ]  # fmt: skip
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        deadline = time.monotonic() + 10
        while self.holder is None:
            if process.poll() is not None or time.monotonic() > deadline:
                raise HarnessError(with_log(f"{self.name} could not be given namespaces", log), reason="NoNamespaces")
            time.sleep(0.01)
        self.run(["hostname", self.name])

    def run(self, command: Sequence[str], *, input: str | None = None, timeout: float = 60) -> str:
        """The output of a command on the machine, which must succeed."""
        done = subprocess.run(
            self.enter(command), input=input, capture_output=True, text=True, timeout=timeout, cwd="/"
        )
        if done.returncode != 0:
            output = (done.stderr or done.stdout).strip()
            raise HarnessError(
                f"on {self.name} `{shlex.join(command)}` exited {done.returncode}: {output}",
                reason="CommandFailed",
            )
        return done.stdout

    def script(self, lines: Sequence[str]) -> None:
        """Several shell lines, ending at the first that fails."""
        self.run(["sh", "-ec", "\n".join(lines)])

    def start(self, service: str, command: Sequence[str], *, own_files: bool = True, restart: bool = False) -> None:
        """Leave a program running on the machine, its output in a log.

        Without `own_files` it sees the host's mounts, as our own Python programs must: they lie anywhere.
        With `restart` it is started again a second after it ends, as systemd does with the programs of a node.
        """
        log = self.layout.log(self.name, service)
        if restart:
            command = ["sh", "-c", _RESTARTING, "sh", *command]
        with log.open("ab") as output:
            subprocess.Popen(
                self.enter(command, own_files=own_files), cwd="/", start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

    def enter(self, command: Sequence[str], *, own_files: bool = True) -> list[str]:
        holder = self.holder
        if holder is None:
            raise HarnessError(f"{self.name} is not running; `make cluster` starts it", reason="MachineOff")
        chosen = [flag for flag in _NAMESPACES if own_files or flag != "--mount"]
        return ["nsenter", "--target", str(holder), *chosen, "--", *command]

    def processes(self) -> dict[int, list[str]]:
        """What runs in the machine's process namespace: command lines by process id outside."""
        holder = self.holder
        return {} if holder is None else _in_namespace(holder)

    def runs(self, program: str) -> bool:
        return any(command and Path(command[0]).name == program for command in self.processes().values())

    def kill(self, program: str) -> None:
        """`kill -9` every process of the machine that runs this program; pods are other programs and live on."""
        for pid, command in self.processes().items():
            if command and Path(command[0]).name == program:
                os.kill(pid, signal.SIGKILL)

    def power_off(self) -> None:
        switch_off(self.layout, [self.name])


def running_machines(layout: Layout) -> dict[str, int]:
    """Holders by machine name, as the process table shows them."""
    return {name: pid for (run, name), pid in _holders().items() if run == str(layout.run)}


def other_clusters(layout: Layout) -> set[str]:
    """Run folders of clusters that belong to another cache."""
    return {run for run, _ in _holders()} - {str(layout.run)}


def _holders() -> dict[tuple[str, str], int]:
    return {
        (command[2], command[3]): pid
        for pid, command in _commands()
        if command[1:2] == [_MARK] and len(command) == 4 and Path(command[0]).name == "pause"
    }


def switch_off(layout: Layout, names: Sequence[str] | None = None) -> None:
    """Cut the power of the machines, or of all, and wait until their processes are gone."""
    holders = [pid for name, pid in running_machines(layout).items() if names is None or name in names]
    gone = {pid for holder in holders for pid in (holder, *_in_namespace(holder))}
    served = fuse_connections(_mounts(gone)) - fuse_connections([Path("/proc/self/mountinfo").read_text()])
    for holder in holders:
        os.kill(holder, signal.SIGKILL)
    _break(served)
    deadline = time.monotonic() + 30
    while alive := {pid for pid in gone if _alive(pid)}:
        if time.monotonic() > deadline:
            raise HarnessError(
                f"processes {sorted(alive)} of the cluster do not die; look at them with ps and kill them by hand",
                reason="StillRunning",
            )
        time.sleep(0.02)


def fuse_connections(mounts: Iterable[str]) -> set[str]:
    """The numbers of the FUSE file systems in texts like `/proc/PID/mountinfo`."""
    lines = [line for text in mounts for line in text.splitlines() if " - fuse." in line or " - fuse " in line]
    return {line.split()[2].partition(":")[2] for line in lines}


def _mounts(pids: Iterable[int]) -> Iterator[str]:
    for pid in pids:
        try:
            yield Path(f"/proc/{pid}/mountinfo").read_text()
        except OSError:  # it ended while we looked
            continue


def _break(connections: set[str]) -> None:
    """Every process that waits for an answer of these file systems gets an error.

    A process that serves one and asks it something itself cannot be killed otherwise: it waits for itself.
    """
    folder = "/sys/fs/fuse/connections"
    each = f"[ ! -e {folder}/$number ] || echo 1 > {folder}/$number/abort"
    script = f"mount -t fusectl none {folder}; for number; do {each}; done"
    if connections:
        subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", *connections], check=True, timeout=30)


def _commands() -> list[tuple[int, list[str]]]:
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            raw = Path("/proc", entry, "cmdline").read_bytes()
        except OSError:  # it ended while we looked
            continue
        if raw:
            found.append((int(entry), raw.decode(errors="replace").rstrip("\0").split("\0")))
    return found


def _in_namespace(holder: int) -> dict[int, list[str]]:
    def namespace(pid: int) -> str:
        try:
            return os.readlink(f"/proc/{pid}/ns/pid")
        except OSError:  # it ended while we looked
            return ""

    own = namespace(holder)
    return {pid: command for pid, command in _commands() if own and namespace(pid) == own}


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
