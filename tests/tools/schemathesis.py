"""Schemathesis makes requests out of OpenAPI documents. It lives in its own environment, made on first use: it
brings more packages than all of the test suite.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools.go import tools

WHEEL = "schemathesis==4.32.5"


def find_or_make() -> Path | None:
    """The program; None where it neither is nor can be fetched."""
    place = tools() / WHEEL.replace("==", "-")
    program = place / "bin" / "schemathesis"
    if program.exists():
        return program
    uv = [sys.executable, "-m", "uv"]
    install = [*uv, "pip", "install", "--quiet", "--python", str(place / "bin" / "python"), WHEEL]
    for command in ([*uv, "venv", "--quiet", "--clear", str(place)], install):
        if subprocess.run(command, capture_output=True, timeout=600).returncode:
            shutil.rmtree(place, ignore_errors=True)
            return None
    return program
