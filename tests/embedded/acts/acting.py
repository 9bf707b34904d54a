"""What tests of commands that reach into running pods share: pdc beside the test, and pods to reach into."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import Completed

Pdc = Callable[..., Completed]
PDC = (sys.executable, "-m", "paddlecloud.cli.main")


def pod(name: str, *command: str, **spec: Any) -> str:
    container = {"name": "main", "image": "python:3.11", "command": list(command)}
    spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **spec}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


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
