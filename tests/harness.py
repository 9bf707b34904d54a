"""What tests share besides fixtures: running pdc, waiting for other processes, namespaces, what a machine must have."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import NAMESPACES
from paddlecloud.kube.stdlib import StdlibTransport, drive

REQUIRED = frozenset(part for part in os.environ.get("PDC_REQUIRE", "").split(",") if part)


def need(thing: str, *, have: bool, hint: str) -> None:
    """Skip without `thing`; fail if PDC_REQUIRE promises it."""
    if have:
        return
    if thing in REQUIRED:
        pytest.fail(f"{thing} is required (PDC_REQUIRE) but missing: {hint}")
    pytest.skip(f"needs {thing}: {hint}")


Completed = subprocess.CompletedProcess[str]
Kubectl = Callable[..., Completed]


PATIENCE = 60.0
"""Seconds for what should happen at once but runs elsewhere. Waiting ends when it is true, so only a failure takes as
long and no verdict hangs on how busy the machine is; half of a test's own limit, so that the failure is reported."""


def until(
    look: Callable[[], Any], expected: Any = bool, *, timeout: float = PATIENCE, every: float = 0.1, what: str = ""
) -> Any:
    """What `look` gives once it is as expected: equal to that, or judged true by it. For what other processes do.

    It looks ever more rarely, in the end twice a second: a look is often a kubectl, which takes from what it waits for.
    Fails with `what` and the last thing seen.
    """
    began = time.monotonic()
    while True:
        seen = look()
        if expected(seen) if callable(expected) else seen == expected:
            return seen
        waited = time.monotonic() - began
        if waited > timeout:
            raise AssertionError(f"{what or look!r}: still {seen!r} after {timeout} s, expected {expected!r}")
        time.sleep(max(every, min(waited / 10, 0.5)))


async def eventually(look: Callable[[], Any], expected: Any = bool, *, what: str = "") -> Any:
    """What `look`, plain or async, gives once it is as expected: equal to that, or judged true by it.

    For what happens in other tasks, threads and processes. Fails with `what` and the last thing seen.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        seen = look()
        if inspect.isawaitable(seen):
            seen = await seen
        if expected(seen) if callable(expected) else seen == expected:
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"{what or look!r}: still {seen!r} after {PATIENCE:.0f} s")
        await asyncio.sleep(0.01)


async def longest_turn(during: asyncio.Future[Any]) -> float:
    """CPU seconds of this thread in the longest turn of its event loop until then: what all other clients wait for.

    Neither other processes nor the garbage of other tests count.
    """
    gc.disable()
    try:
        longest, before = 0.0, time.thread_time()
        while not during.done():
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, before = max(longest, now - before), now
        return longest
    finally:
        gc.enable()


@dataclass(frozen=True)
class Target:
    """A platform to test on: the embedded one, the cluster of `make cluster`, or any other."""

    kubeconfig: Path
    embedded: bool
    offer: Callable[[str], None] = lambda image: None
    """Has pods find an image: builds its recipe, where the platform does not fetch images from elsewhere."""

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}


def pdc(*args: str, check: bool = True, env: dict[str, str] | None = None, **options: Any) -> Completed:
    """Run pdc as a user would."""
    result = subprocess.run(
        [sys.executable, "-m", "paddlecloud.cli.main", *args],
        capture_output=True, text=True, timeout=options.pop("timeout", 90), env=env or dict(os.environ), **options,
    )  # fmt: skip
    if check and result.returncode != 0:
        raise AssertionError(f"pdc {' '.join(args)} exited {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result


_numbers = itertools.count(1)


@contextlib.contextmanager
def namespace_on(server: Target) -> Iterator[str]:
    """Each step on its own connection: in between the platform may have been killed and be back."""

    def ask(step: Callable[[Client], Coroutine[Any, Any, Any]]) -> None:
        client = Client(StdlibTransport(config.load(str(server.kubeconfig)), user_agent="tests"))
        try:
            drive(step(client))
        finally:
            drive(client.close())

    name = f"t-{os.getpid()}-{next(_numbers)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    ask(lambda client: client.create(NAMESPACES, body))
    yield name
    ask(lambda client: client.delete(NAMESPACES, name))
