"""The parent of all shims: a small interpreter that forks, so that no pod waits for Python to start.

It listens on the socket it was given as its standard input: a message is a pod directory, with the shim's first
client attached as a file descriptor. It holds no state: it ends when the control plane does, and a new control plane
starts a new one; shims live in their own sessions and notice neither.

An image may keep a *warm parent*: this same program run by the image's own interpreter with modules preloaded.
Standard library only.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys

from paddlecloud.local.kubelet import shim, warmstart, wire

MAX_PATH = 8192
READY = b"ready"


def serve(control: socket.socket) -> None:
    """Fork a shim per message until the other side is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps shims that end while we live
    gc.collect()
    gc.freeze()  # so that a collection in a shim does not copy every page it inherited
    while True:
        message, fds = wire.receive(control, MAX_PATH)
        if not message:
            return
        if os.fork() == 0:
            _become_shim(control, os.fsdecode(message), fds)
        for fd in fds:
            os.close(fd)


def _become_shim(control: socket.socket, pod_dir: str, fds: list[int]) -> None:
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        control.close()
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        os.close(nothing)
        code = shim.main(pod_dir, socket.socket(fileno=fds[0]) if fds else None)
    except BaseException:  # the process ends here in any case; its log must tell why
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def main(preload: list[str]) -> None:
    os.setsid()  # a signal to the control plane's group must not reach the shims through their parent
    control = socket.socket(fileno=os.dup(0))
    before = _open_files()
    try:
        for module in preload:
            importlib.import_module(module)
    except Exception as error:  # whatever a module of an image does at import: the kubelet goes on without it
        sys.exit(f"cannot preload {module}: {error}")
    warmstart.inherited = frozenset(_open_files() - before)
    try:
        control.send(READY)
        serve(control)
    except ConnectionError:
        return  # the control plane is gone


def _open_files() -> set[int]:
    return {int(name) for name in os.listdir("/proc/self/fd")}


if __name__ == "__main__":
    main(sys.argv[1:])
