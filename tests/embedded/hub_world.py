"""A model with two versions, served by an alias that moves: the scenario of both platforms."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from embedded.serving_world import Load, read
from harness import Completed, Kubectl, until
from unit.serving import models

KIND = "paddleservice.serving.paddlepaddle.org"
FEED = json.dumps({"feed": [{"x": [1, 2, 3]}]}).encode()
FILES = re.compile(r'^modelhub_requests_total\{.*/files/.*code="2\d\d".*\} (\d+)', re.MULTILINE)

Run = Callable[..., Completed]


def factor(answer: str) -> str:
    """By which number the model that answered multiplies: its version."""
    return f"{json.loads(answer)['result']['y'][0][0]:g}"


def push_two(run: Run, folder: Path) -> None:
    """Version 1, which is production, and version 2; they multiply by their number."""
    for number in (1, 2):
        made = models.linear(folder / f"model-{number}", factor=number)
        alias = ("--alias", "production") if number == 1 else ()
        assert f"ocr:{number} pushed" in run("model", "push", "ocr", str(made), *alias).stdout


def served(kubectl: Kubectl) -> list[tuple[str, int]]:
    status = read(kubectl, KIND, "ocr").get("status") or {}
    return [(entry["version"], entry["percent"]) for entry in status.get("models") or ()]


def sent(metrics: str) -> int:
    """How many files the hub has sent, by its own metrics."""
    return sum(map(int, FILES.findall(metrics)))


def follows_its_alias(run: Run, kubectl: Kubectl, url: str, gateway: str = "", timeout: float = 120) -> None:
    """Forth and back under steady requests, none of which fails."""
    with Load(url, clients=2, path="/ocr/prediction", body=FEED, gateway=gateway, word=factor) as load:
        assert set(load.more(20, timeout=60)) == {"1"}
        for version, other in (("2", "1"), ("1", "2")):
            run("model", "tag", f"ocr:{version}", "production", "--reason", f"better than {other}")
            until(lambda version=version: served(kubectl) == [(version, 100)], timeout=timeout)  # type: ignore[misc]
            load.more(10, timeout=60)
            until(lambda version=version: set(load.more(10)) == {version}, timeout=60)  # type: ignore[misc]
            found: dict[str, Any] = read(kubectl, KIND, "ocr")["status"]
            assert found["default"]["model"] == f"ocr:{version}"
            assert found["models"][0]["reference"] == "ocr@production"
            assert found["models"][0]["digest"].startswith("sha256:")
            assert found["models"][0]["since"]
    assert load.errors == []
