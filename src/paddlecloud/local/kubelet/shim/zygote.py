"""The parent of all shims: a small interpreter that forks, so that no pod waits for Python to start.

It listens on the socket it was given as its standard input: a message is a pod directory, with the shim's first
client attached as a file descriptor. It holds no state: it ends when the control plane does, and a new control plane
starts a new one; shims live in their own sessions and notice neither.

An image may keep a *warm parent*: this same program run by the image's own interpreter with modules preloaded.
Standard library only.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from paddlecloud.local.kubelet.shim import shim, warmstart, wire
from paddlecloud.local.kubelet.shim.preloaded import CannotPreload, out_of_the_way, preload

MAX_PATH = 8192


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
    except warmstart.Become:
        raise  # this is no longer the shim but a child of it
    except BaseException:  # the process ends here in any case; its log must say why
        sys.excepthook(*sys.exc_info())
    os._exit(code)


def _unignore_signals() -> None:
    """Programs of pods start with the default of every signal, however the platform was started.

    What a process ignores its children ignore too: after `nohup pdc up &` a Ctrl-C in a pod would reach nobody. The two
    that Python itself ignores are reset at the start of each program.
    """
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def main(roots: list[str], *, main: Mapping[str, Any], at_start: Collection[str]) -> Callable[[], None]:
    """Serve to the end. What is returned is the rest of this process: in a child, the program that it became.

    `main` are the globals of `__main__` and `at_start` the imported modules, both as the interpreter made them.
    """
    os.setsid()  # a signal to the control plane's group must not reach the shims through their parent
    _unignore_signals()
    control = socket.socket(fileno=out_of_the_way(0))
    reads: Collection[str] = ()
    if roots:
        try:
            warmstart.preloaded = preload(roots, main=main, at_start=at_start)
            reads = warmstart.preloaded.reads
        except CannotPreload as error:
            sys.exit(f"cannot preload {', '.join(roots)}: {error}")
    try:
        control.send(json.dumps(sorted(reads)).encode())
        serve(control)
    except ConnectionError:
        return _leave  # the control plane is gone
    except warmstart.Become as program:
        call = program.call
    else:
        return _leave
    return warmstart.become(call)


def _leave() -> None:
    """The parent's own end: exit handlers of the modules that it preloaded are not for it."""
    os._exit(0)
