"""What tests share besides fixtures: running pdc, waiting for other processes, and what a machine must have."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

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


def until(check: Callable[[], bool], *, timeout: float, every: float = 0.1) -> None:
    """Wait for another process to get somewhere. Fails, with the check's name, when it does not."""
    deadline = time.monotonic() + timeout
    while not check():
        if time.monotonic() > deadline:
            raise AssertionError(f"still not true after {timeout} s: {check!r}")
        time.sleep(every)


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
