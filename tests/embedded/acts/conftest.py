"""pdc in a namespace of the test's own, with real pods."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from embedded.acts.acting import PDC, Pdc, pod
from harness import Completed, Target


@pytest.fixture
def environment(server: Target, tmp_path: Path) -> dict[str, str]:
    return {**server.env, "LC_ALL": "C.UTF-8"}


@pytest.fixture
def run(environment: dict[str, str], namespace: str, tmp_path: Path) -> Pdc:
    """pdc in the test's namespace and in its own folder; failures are returned, not raised."""

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


@pytest.fixture
def sleeper(run: Pdc) -> str:
    made = run("apply", "-f", "-", "--wait", "--timeout", "60s", input=pod("sleeper", "sleep", "600"))
    assert made.returncode == 0, made.stderr
    return "sleeper"
