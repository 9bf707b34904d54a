"""Containers of one pod that depend on each other: those of a container set, and sidecars.

As Argo's emissary: each leaves its exit code in a folder that all of them share.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from paddlecloud.local.workflow.executor import programs
from paddlecloud.local.workflow.executor.orders import BROKEN, SHARED, ExecutorError

PAUSE = 0.05
KILLED = 137
GRACE = 10.0
"""Seconds that a sidecar has after SIGTERM."""


def run_in_set(
    order: dict[str, Any], program: Callable[[], int], save: Callable[[int], int] = lambda code: code
) -> int:
    """Run the program when the containers that it depends on have succeeded; others then read its exit code.

    `save` is called with it, and gives that of the step. Outputs may be made by any container: the one that saves them
    waits until its `others` are over, as Argo's wait container does.
    """
    code = 1
    alive = _mark_alive(order["name"])
    try:
        for name in order.get("after") or ():
            if (ended := _wait_for(name)) != 0:
                raise ExecutorError(f"container {name}, on which this one depends, failed with exit code {ended}")
        for attempt in range(int(order.get("retries") or 0) + 1):
            if attempt:
                time.sleep(order["pause"])
            code = program()
            if code == 0:
                break
        if not order.get("others"):
            code = save(code)
    except ExecutorError:
        code = BROKEN
        raise
    finally:
        fresh = os.path.join(SHARED, f".{order['name']}")
        with open(fresh, "w") as file:
            file.write(str(code))
        os.replace(fresh, os.path.join(SHARED, f"{order['name']}.exit"))
        alive.close()
    for name in order.get("others") or ():
        _wait_for(name)
    return save(code) if order.get("others") else code


def _mark_alive(name: str) -> TextIO:
    """A file that is locked as long as this process runs: one that is killed leaves no exit code."""
    fresh = os.path.join(SHARED, f".{name}.alive")
    file = open(fresh, "w")  # noqa: SIM115
    fcntl.flock(file, fcntl.LOCK_EX)
    os.replace(fresh, os.path.join(SHARED, f"{name}.alive"))
    return file


def _ended(name: str) -> int | None:
    killed = _was_killed(name)  # before the look at the exit code, which is written before the lock is given up
    try:
        with open(os.path.join(SHARED, f"{name}.exit")) as file:
            return int(file.read())
    except FileNotFoundError:
        return KILLED if killed else None


def _was_killed(name: str) -> bool:
    """Whether it began and runs no more."""
    try:
        with open(os.path.join(SHARED, f"{name}.alive")) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
    except (FileNotFoundError, BlockingIOError):
        return False


def _wait_for(name: str) -> int:
    while (code := _ended(name)) is None:
        time.sleep(PAUSE)
    return code


def run_sidecar(command: list[str]) -> int:
    """A sidecar: it is ended when the main container is over, and what it returns then does not count."""
    child = programs.started(command)
    while (code := child.poll()) is None:
        if _ended("main") is not None:
            child.terminate()
            try:
                child.wait(GRACE)
            except subprocess.TimeoutExpired:
                print("the sidecar did not end within its grace period and is killed", file=sys.stderr)
                child.kill()
                child.wait()
            return 0
        time.sleep(PAUSE)
    return code if code >= 0 else 128 - code
