"""One container in its shim: its first process, its output and how it ended.

A container is *exited* only after its first process was reaped, every other process of it was killed, and all its
output is in the log file: who sees the exit code can read the whole log. Standard library only: the shim imports this.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from paddlecloud.local.kubelet.shim import cgroups, launch, private_tmp, processes, wire
from paddlecloud.local.kubelet.shim.cgroups import CgroupPath, Limits, memory_text
from paddlecloud.local.kubelet.shim.eventloop import Loop, Timer
from paddlecloud.local.kubelet.shim.logfile import LogFile, format_chunk
from paddlecloud.local.kubelet.shim.netguard import NetGuard
from paddlecloud.local.kubelet.shim.sandbox import Sandbox
from paddlecloud.local.kubelet.shim.wire import ContainerSpec

READ_SIZE = 256 * 1024
DRAIN_LIMIT = 2.0
"""Seconds to wait for the end of the output after the last process died: a descriptor may have left the container."""

MEMORY_PERIOD = 0.25

END_OF_INPUT = b"\x04"
"""A terminal has no end of file but this character."""

STARTING, RUNNING, EXITED = "starting", "running", "exited"


def exit_code(status: int) -> int:
    """As shells and container runtimes count: 137 for a process ended by SIGKILL."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


class Container:
    """Created by `start`; reports through `changed` whenever what `state()` returns is different."""

    def __init__(
        self,
        spec: ContainerSpec,
        *,
        loop: Loop,
        sandbox: Sandbox,
        guard: NetGuard,
        staging: str,
        changed: Callable[[], None],
        cgroup: CgroupPath | None = None,
        pids_limit: int = 0,
    ) -> None:
        """`cgroup` is the pod's; the container makes its own below it."""
        self.spec = spec
        self.cgroup = cgroup.below(f"{spec.name}.{spec.attempt}") if cgroup else None
        self.pids_limit = pids_limit
        self._guard = guard
        self._guard_fds: set[int] = set()
        self._loop = loop
        self._sandbox = sandbox
        self._staging = staging
        self._changed = changed
        self._log = LogFile(spec.log_path, max_bytes=spec.log_max_bytes, max_files=spec.log_max_files)
        self._outputs: dict[int, bytes] = {}
        self.input: int | None = None
        """Where clients that join the container write: a pipe, or its terminal, whose output comes back here too."""
        self._report: socket.socket | None = None
        self._ended: int | None = None  # wait status of the first process
        self._kill_timer: Timer | None = None
        self._kill_at = 0.0
        self._drain_timer: Timer | None = None
        self.namespace_fd: int | None = None
        self.namespace = ""
        self.phase = STARTING
        self.pid = 0
        self.created = time.time()
        self.started: float | None = None
        self.finished: float | None = None
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.reason = ""
        self.message = ""

    def state(self) -> dict[str, Any]:
        return {
            "attempt": self.spec.attempt,
            "streak": self.spec.streak,
            "phase": self.phase,
            "pid": self.pid,
            "created": self.created,
            "started": self.started,
            "finished": self.finished,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "reason": self.reason,
            "message": self.message,
            "log": self.spec.log_path,
            "namespace": self.namespace,
        }

    # Starting

    def start(self) -> None:
        """Raises `OSError` where the machine has no room for one more process."""
        os.makedirs(self._staging, exist_ok=True)
        if self.cgroup:
            cgroups.make(self.cgroup, Limits(memory=self.spec.memory_limit, cpu_millis=self.spec.cpu_millis))
        for note in self._notes():
            # Not of the program: nobody who reads its output or joins its streams gets it in place of an answer.
            self._log.write(format_chunk(b"stderr", f"{note}\n".encode(), time.time()))
        stdio = self._open_streams()
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            self._loop.forget_in_child()
            launch.become(
                self.spec,
                self._sandbox,
                staging=self._staging,
                report=theirs,
                stdio=stdio,
                cgroup=self.cgroup,
                pids_limit=self.pids_limit,
            )
        self.pid = pid
        theirs.close()
        for fd in set(stdio):
            os.close(fd)
        for fd in self._outputs:
            os.set_blocking(fd, False)
            self._loop.watch(fd, lambda fd=fd: self._on_output(fd))  # type: ignore[misc]
        ours.setblocking(False)
        self._report = ours
        self._loop.watch(ours.fileno(), self._on_report)
        self._changed()

    def _notes(self) -> list[str]:
        """The lines before the program's own."""
        hidden = private_tmp.sentence(self.spec.argv, self.spec.mounts) if self._sandbox.mounts else ""
        return [note for note in (self.spec.note, hidden and f"note: {hidden}") if note]

    def _open_streams(self) -> tuple[int, int, int]:
        """Standard input, output and error for the child; our ends are kept."""
        if self.spec.tty:
            master, slave = os.openpty()
            self._outputs[master] = b"stdout"
            self.input = master if self.spec.stdin else None
            return slave, slave, slave
        if self.spec.stdin:
            stdin, self.input = os.pipe()
        else:
            stdin = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        theirs = [stdin]
        for stream in (b"stdout", b"stderr"):
            ours, write = os.pipe()
            self._outputs[ours] = stream
            theirs.append(write)
        return theirs[0], theirs[1], theirs[2]

    def client_left(self) -> None:
        """One that had joined the input: for a program that wants only one, the input is over."""
        if not self.spec.stdin_once or self.input is None:
            return
        if self.spec.tty:
            os.write(self.input, END_OF_INPUT)
        else:
            self._close_input()

    def _close_input(self) -> None:
        if self.input is not None and self.input not in self._outputs:
            os.close(self.input)
        self.input = None

    def _on_report(self) -> None:
        """The child's word on its start: an error text, or the end of the stream once exec closed it."""
        assert self._report is not None
        try:
            text, fds = wire.receive(self._report, 4096)
        except BlockingIOError:
            return
        for fd in fds:
            self.watch_sockets(fd)
        text = text.removeprefix(launch.GUARD) if fds else text
        if fds and not text:
            return
        self._loop.unwatch(self._report.fileno())
        self._report.close()
        self._report = None
        if text:
            self.reason = "StartError"
            self.message = text.decode(errors="replace")
        elif self.phase == STARTING:
            self.phase = RUNNING
            self.started = time.time()
            self._remember_namespace()
            if self.spec.memory_limit and not (self.cgroup and "memory" in self.cgroup.dirs):
                self._loop.after(MEMORY_PERIOD, self._check_memory)
        self._changed()
        self._maybe_exited()

    def watch_sockets(self, listener: int) -> None:
        """Answer for the sockets of this container's processes until the last of them is gone."""
        self._guard_fds.add(listener)

        def answer() -> None:
            if not self._guard.answer(listener):
                self._close_guard(listener)

        self._loop.watch(listener, answer)

    def _close_guard(self, listener: int) -> None:
        self._guard_fds.discard(listener)
        self._loop.unwatch(listener)
        os.close(listener)

    def _remember_namespace(self) -> None:
        if not self._sandbox.mounts:
            return
        try:
            self.namespace_fd = os.open(f"/proc/{self.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return  # it was so short that it is gone already
        self.namespace = processes.mount_namespace(self.pid)

    # Output

    def _on_output(self, fd: int) -> None:
        try:
            chunk = os.read(fd, READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            self._log.write(format_chunk(self._outputs[fd], chunk, time.time()))
            return
        self._close_output(fd)
        self._maybe_exited()

    def _close_output(self, fd: int) -> None:
        if fd == self.input:
            self.input = None
        self._loop.unwatch(fd)
        os.close(fd)
        del self._outputs[fd]

    # Ending

    def members(self) -> list[int]:
        """Every living process of this container but its first."""
        if self.cgroup:
            return [pid for pid in cgroups.members(self.cgroup) if pid != self.pid]
        shim = os.getpid()
        if self.namespace:
            return [
                pid
                for pid in processes.descendants(shim)
                if pid != self.pid and processes.mount_namespace(pid) == self.namespace
            ]
        mark = f"{processes.CONTAINER_MARK}={self.spec.name}".encode()
        return [
            pid for pid in processes.descendants(shim) if pid != self.pid and processes.environment_has(pid, (mark,))
        ]

    def stop(self, grace: float, number: int = signal.SIGTERM) -> None:
        """Ask the first process to end, and end everything by force after `grace` seconds.

        An order repeated (a kubelet came back) asks no second time and can only shorten the grace.
        """
        if self.phase == EXITED:
            return
        kill_at = time.monotonic() + grace
        if self._kill_timer is None and self._ended is None and grace > 0:
            processes.send(self.pid, number)
        elif self._kill_timer is not None and kill_at >= self._kill_at:
            return
        if self._kill_timer is not None:
            self._kill_timer.cancel()
        self._kill_at = kill_at
        if grace <= 0:
            self.kill()
        else:
            self._kill_timer = self._loop.after(grace, self.kill)

    def kill(self) -> None:
        if self._ended is None:
            processes.send(self.pid, signal.SIGKILL)
        self._kill_members()

    def _kill_members(self) -> None:
        if not (self.cgroup and cgroups.kill(self.cgroup)):
            processes.kill_all(self.members)

    def on_reaped(self, status: int) -> None:
        """The first process ended: so does the rest, as it does with the first process of a PID namespace."""
        self._ended = status
        self._kill_members()
        self._drain_timer = self._loop.after(DRAIN_LIMIT, self._give_up_draining)
        self._maybe_exited()

    def _give_up_draining(self) -> None:
        for fd in list(self._outputs):
            self._close_output(fd)
        self._maybe_exited()

    def _maybe_exited(self) -> None:
        if self._ended is None or self._outputs or self._report is not None or self.phase == EXITED:
            return
        self.phase = EXITED
        self.finished = time.time()
        self.signal = os.WTERMSIG(self._ended) if os.WIFSIGNALED(self._ended) else None
        self.exit_code = exit_code(self._ended)
        if not self.reason:
            self.reason = "Completed" if self.exit_code == 0 else "Error"
            if self.exit_code and self.cgroup and cgroups.ran_out_of_memory(self.cgroup):
                self.reason = "OOMKilled"
                self.message = f"it needed more memory than its limit of {memory_text(self.spec.memory_limit)}"
        if self.cgroup:
            cgroups.remove(self.cgroup)
        for timer in (self._kill_timer, self._drain_timer):
            if timer:
                timer.cancel()
        if self.namespace_fd is not None:
            os.close(self.namespace_fd)
            self.namespace_fd = None
        for listener in list(self._guard_fds):
            self._close_guard(listener)
        self._close_input()
        self._log.close()
        self._changed()

    # Memory

    def _check_memory(self) -> None:
        """Where no cgroup can hold a container to its limit, this does, a quarter of a second late."""
        if self.phase != RUNNING:
            return
        used = sum(processes.resident_bytes(pid) for pid in (self.pid, *self.members()))
        if used > self.spec.memory_limit:
            self.reason = "OOMKilled"
            self.message = f"used {memory_text(used)} of memory; its limit is {memory_text(self.spec.memory_limit)}"
            self.kill()
            return
        self._loop.after(MEMORY_PERIOD, self._check_memory)
