"""Real Paddle for tests that need no platform: the interpreter of a local image, built on first use."""

from __future__ import annotations

import asyncio
import functools
import os
import subprocess
import textwrap
from pathlib import Path

from paddlecloud.local.images.store import ImageStore

SOURCE = Path(__file__).parents[2] / "src"


@functools.cache
def interpreter(image: str = "paddlecloud/paddle:3.3") -> str:
    environment = asyncio.run(ImageStore().prepare(image))
    return str(Path(environment.path[0]) / "python")


def run(
    program: str, *arguments: str, image: str = "paddlecloud/paddle:3.3", timeout: float = 100, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in that interpreter, with this project importable and nothing of the caller's pod around it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PADDLE"))}
    return subprocess.run(
        [interpreter(image), "-c", textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**clean, "PYTHONPATH": str(SOURCE), "GLOG_minloglevel": "2", **env},
    )
