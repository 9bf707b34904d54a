"""How much `pip install paddlecloud` brings along."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .claim import Claim

ROOT = Path(__file__).parent.parent


def run() -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as directory:
        uv = [sys.executable, "-m", "uv"]
        target = Path(directory) / "site"
        command = [*uv, "pip", "install", "--quiet", "--python", sys.executable, "--target", str(target), str(ROOT)]
        subprocess.run(command, check=True, timeout=600)
        size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) / 1e6
        count = len(list(target.glob("*.dist-info")))
    yield Claim("core install, size", size, "MB", goal=55, note="pip install --target, no bytecode")
    yield Claim("core install, distributions", count, "", goal=25)
