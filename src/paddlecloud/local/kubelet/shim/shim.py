"""The supervisor of one pod: a small process that owns the pod's containers, their logs and their exit codes.

It is forked from the zygote, leads its own session and outlives the control plane, which finds it again through the
files of the pod directory (`wire`). It carries out orders and remembers; it decides nothing: restarts, order and
probes are the kubelet's business, so while no kubelet is there what runs keeps running and what ended stays ended.

A lock in the pod directory makes sure that no pod ever has two shims, and an order to start names its attempt, so an
order repeated after a crash starts nothing twice. Standard library only: five hundred of these must fit in a laptop.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from paddlecloud.local import lowports
from paddlecloud.local.kubelet.shim import cgroups, launch, linux, processes, sandbox, wire
from paddlecloud.local.kubelet.shim.container import EXITED, RUNNING, Container, exit_code
from paddlecloud.local.kubelet.shim.eventloop import Loop
from paddlecloud.local.kubelet.shim.netguard import NetGuard

ORPHAN_CHECK_PERIOD = 30.0
"""How often a shim looks whether its pod directory still exists; without it nobody will ever stop it."""


class OrderRefused(Exception):
    """An order that cannot be carried out; the text goes back to the kubelet."""


class Connection:
    """One client of the shim. Orders may carry file descriptors (exec's standard streams)."""

    def __init__(self, sock: socket.socket, shim: Shim) -> None:
        sock.setblocking(False)
        self.sock = sock
        self._shim = shim
        self._buffer = b""
        self._fds: list[int] = []
        self._giving: list[int] = []
        self.joined: Container | None = None
        """The container whose input this client has."""

    def on_readable(self) -> None:
        try:
            data, fds = wire.receive(self.sock, 65536)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        self._fds.extend(fds)
        if not data:
            self._shim.disconnect(self)
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._answer(json.loads(line))

    def _answer(self, order: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"id": order.get("id")}
        try:
            answer["result"] = self._shim.carry_out(order, self)
        except (OrderRefused, OSError) as error:
            answer["error"] = str(error)
        finally:
            for fd in self._fds:
                os.close(fd)
            self._fds.clear()
        self.send(answer, self._giving)
        self._giving.clear()

    def give(self, fd: int) -> None:
        """A descriptor of ours to go along with the answer."""
        self._giving.append(fd)

    def take_fds(self) -> list[int]:
        fds, self._fds = self._fds, []
        return fds

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """A client that does not read is dropped: it finds everything in the state when it comes back."""
        data = wire.encode(message)
        try:
            sent = socket.send_fds(self.sock, [data], fds) if fds else 0
            self.sock.sendall(data[sent:])
        except OSError:
            self._shim.disconnect(self)

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self.sock.close()


class Shim:
    def __init__(self, pod_dir: str, spec: wire.PodSpec, box: sandbox.Sandbox, loop: Loop) -> None:
        self._dir = pod_dir
        self._spec = spec
        self._box = box
        self._loop = loop
        self._guard = NetGuard(spec.ip or "127.0.0.1", lowest=lowports.lowest())
        self._cgroup, self._unlimited = _make_cgroup(spec)
        self._started = time.time()
        self._containers: dict[str, Container] = {}
        self._ended: dict[str, dict[str, Any]] = {}  # runs of an earlier shim of this pod
        self._previous: dict[str, dict[str, Any]] = {}  # the run before the last one, for `logs --previous`
        self._execs: dict[int, Connection] = {}
        self._connections: set[Connection] = set()
        self._orders: dict[str, Callable[[dict[str, Any], Connection], Any]] = {
            "start": self._order_start,
            "stop": self._order_stop,
            "signal": self._order_signal,
            "exec": self._order_exec,
            "attach": self._order_attach,
            "state": lambda _order, _connection: self.state(),
            "shutdown": self._order_shutdown,
        }
        loop.on_signal(signal.SIGCHLD, self._reap)
        loop.on_signal(signal.SIGTERM, self.shutdown)
        loop.after(ORPHAN_CHECK_PERIOD, self._check_directory)

    def resume(self, state: dict[str, Any]) -> None:
        """Continue the record of a shim that died: attempts go on counting from where it was."""
        self._previous = dict(state.get("previous") or {})
        self._ended = dict(state.get("containers") or {})

    def state(self) -> dict[str, Any]:
        return {
            "shim": {
                "pid": os.getpid(),
                "started": self._started,
                "mode": self._box.mode,
                "reason": self._box.reason,
                "unlimited": self._unlimited,
            },
            "containers": {**self._ended, **{name: c.state() for name, c in self._containers.items()}},
            "previous": self._previous,
        }

    def changed(self) -> None:
        state = self.state()
        try:
            wire.write_json(os.path.join(self._dir, wire.STATUS), state)
        except OSError as error:
            print(f"cannot record the state: {error}", file=sys.stderr)
        for connection in list(self._connections):
            connection.send({"state": state})

    # Clients

    def listen(self) -> None:
        """Accept kubelets to come. The path is relative: those of a deep data directory exceed a socket address."""
        os.chdir(self._dir)
        try:
            os.unlink(wire.SOCKET)
        except FileNotFoundError:
            pass  # the first shim of this pod
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(wire.SOCKET)
        server.listen(8)
        server.setblocking(False)

        def accept() -> None:
            try:
                client, _ = server.accept()
            except OSError:
                return  # it left before it was let in
            self.connect(client)

        self._loop.watch(server.fileno(), accept)

    def connect(self, sock: socket.socket) -> None:
        connection = Connection(sock, self)
        self._connections.add(connection)
        self._loop.watch(sock.fileno(), connection.on_readable)
        connection.send({"state": self.state()})

    def disconnect(self, connection: Connection) -> None:
        """Programs run by `exec` end with the client that asked for them: nobody could read or stop them any more."""
        for pid, client in list(self._execs.items()):
            if client is connection:
                processes.kill_all(lambda pid=pid: (pid, *processes.descendants(pid)))  # type: ignore[misc]
        if connection in self._connections:
            if connection.joined is not None:
                connection.joined.client_left()
            self._connections.discard(connection)
            self._loop.unwatch(connection.sock.fileno())
            connection.close()

    # Orders

    def carry_out(self, order: dict[str, Any], connection: Connection) -> Any:
        handler = self._orders.get(str(order.get("do")))
        if handler is None:
            raise OrderRefused(f"this shim knows no order {order.get('do')!r}")
        return handler(order, connection)

    def _order_start(self, order: dict[str, Any], _: Connection) -> None:
        spec = wire.container_spec(order["container"])
        current = self._containers.get(spec.name)
        last = current.state() if current else self._ended.get(spec.name)
        if last is not None:
            if spec.attempt <= last["attempt"]:
                return  # repeated after a crash of the kubelet: it runs or ran already
            if current and current.phase != EXITED:
                raise OrderRefused(f"container {spec.name} still runs (attempt {current.spec.attempt})")
            self._previous[spec.name] = last
        self._ended.pop(spec.name, None)
        container = Container(
            spec,
            loop=self._loop,
            sandbox=self._box,
            guard=self._guard,
            staging=os.path.join(self._dir, "root", spec.name),
            changed=self.changed,
            cgroup=self._cgroup,
            pids_limit=self._spec.pids_limit,
        )
        self._containers[spec.name] = container
        container.start()

    def _order_stop(self, order: dict[str, Any], _: Connection) -> None:
        if container := self._containers.get(order["name"]):
            container.stop(float(order.get("grace", 0)), int(order.get("signal", signal.SIGTERM)))

    def _order_signal(self, order: dict[str, Any], _: Connection) -> bool:
        return processes.send(self._running(order["name"]).pid, int(order["signal"]))

    def _order_exec(self, order: dict[str, Any], connection: Connection) -> int:
        """Run a program beside the container's; its exit code follows as `{"exec": pid, "exit_code": n}`."""
        stdio = connection.take_fds()
        try:
            container = self._running(order["name"])
            if len(stdio) != 3:
                raise OrderRefused("exec needs three file descriptors")
            ours, theirs = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                self._loop.forget_in_child()
                launch.enter(
                    container.spec,
                    self._box,
                    namespace_fd=container.namespace_fd,
                    argv=order["argv"],
                    tty=bool(order.get("tty")),
                    report=theirs,
                    stdio=stdio,
                    cgroup=container.cgroup,
                    pids_limit=container.pids_limit,
                )
        finally:
            for fd in stdio:
                os.close(fd)
        theirs.close()
        self._adopt_sockets(ours, container)
        self._execs[pid] = connection
        return pid

    def _order_attach(self, order: dict[str, Any], connection: Connection) -> bool:
        """Give the client the container's input, if it has one; the answer says whether that is a terminal."""
        container = self._running(order["name"])
        if container.input is not None:
            connection.joined = container
            connection.give(container.input)
        return container.spec.tty

    def _adopt_sockets(self, report: socket.socket, container: Container) -> None:
        """The new process is of the container's pod: its sockets are treated alike."""

        def on_report() -> None:
            _, fds = wire.receive(report, 64)
            for fd in fds:
                container.watch_sockets(fd)
            if not fds:
                self._loop.unwatch(report.fileno())
                report.close()

        self._loop.watch(report.fileno(), on_report)

    def _running(self, name: str) -> Container:
        container = self._containers.get(name)
        if container is None or container.phase != RUNNING:
            raise OrderRefused(f"container {name} is not running")
        return container

    def _order_shutdown(self, _order: dict[str, Any], _connection: Connection) -> None:
        self.shutdown()

    def shutdown(self) -> None:
        """End every process of the pod and this shim. Logs and the last state stay in the pod directory."""
        self._reap()  # the client of an `exec` that ended its container waits for the exit code
        for container in self._containers.values():
            if container.phase != EXITED:
                container.kill()
        processes.kill_all(lambda: processes.descendants(os.getpid()))
        processes.bury_all()  # who waits for the shim waits for all of the pod
        self._loop.stop()

    # Events of the kernel

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if client := self._execs.pop(pid, None):
                client.send({"exec": pid, "exit_code": exit_code(status)})
                continue
            for container in self._containers.values():
                if container.pid == pid and container.phase != EXITED:
                    container.on_reaped(status)

    def _check_directory(self) -> None:
        if os.path.exists(os.path.join(self._dir, wire.SPEC)):
            self._loop.after(ORPHAN_CHECK_PERIOD, self._check_directory)
        else:
            self.shutdown()


def _make_cgroup(spec: wire.PodSpec) -> tuple[cgroups.CgroupPath | None, str]:
    """The pod's place for cgroups, or why it has none although one was meant for it."""
    if spec.cgroup is None:
        return None, ""
    try:
        cgroups.make(spec.cgroup, cgroups.Limits(pids=spec.pids_limit))
        cgroups.open_to_children(spec.cgroup)
    except OSError as error:
        return None, str(error)
    return spec.cgroup, ""


def take_lock(pod_dir: str) -> bool:
    """Held by the process, not by its children, until it dies: POSIX locks are not inherited."""
    fd = os.open(os.path.join(pod_dir, wire.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return False
    return True


def main(pod_dir: str, first_client: socket.socket | None) -> int:
    """Supervise the pod whose files are in `pod_dir`, serving `first_client` and all that come later."""
    os.setsid()
    os.umask(0o022)
    if not take_lock(pod_dir):
        return 1
    errors = os.open(os.path.join(pod_dir, "shim.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(errors, 2)
    body = wire.read_json(os.path.join(pod_dir, wire.SPEC))
    if body is None:
        return 1
    spec = wire.pod_spec(body)
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    box = sandbox.enter_pod(spec.hostname, forbid=spec.forbid)
    if box.mounts:
        for path, size in spec.tmpfs:
            linux.mount("tmpfs", path, kind="tmpfs", options=f"mode=1777,size={size}" if size else "mode=1777")
    loop = Loop()
    shim = Shim(pod_dir, spec, box, loop)
    if last := wire.read_json(os.path.join(pod_dir, wire.STATUS)):
        shim.resume(last)
    shim.listen()
    if first_client is not None:
        shim.connect(first_client)
    shim.changed()
    loop.run()
    return 0
