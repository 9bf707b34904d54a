"""What tests with real kubectl share: objects in as JSON, objects out as dicts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
WAIT = "--timeout=60s"


def apply(kubectl: Kubectl, *objects: dict[str, Any]) -> None:
    kubectl("apply", "-f", "-", input="\n".join(map(json.dumps, objects)))


def read(kubectl: Kubectl, *what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kubectl("get", *what, "-o", "json").stdout)
    return found
