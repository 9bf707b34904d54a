"""Every difference between the embedded API and the real one is known and explained."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import Target

from .comparison import differences

pytestmark = pytest.mark.core

EXPLAINED: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "differences.yaml").read_text())
PATTERNS: list[str] = [line for entry in EXPLAINED for line in entry.get("lines", ())]


@pytest.fixture(scope="module")
def found(server: Target, embedded: Target) -> list[str]:
    return differences(server.kubeconfig, embedded.kubeconfig)


def matches(line: str, pattern: str) -> bool:
    """Brackets in a line stand for themselves."""
    return fnmatchcase(line, pattern.replace("[", "[[]"))


def test_nothing_differs_without_a_reason(found: list[str]) -> None:
    unexplained = [line for line in found if not any(matches(line, pattern) for pattern in PATTERNS)]
    assert not unexplained, "\n".join(["correct these, or explain them in differences.yaml:", *unexplained])


def test_no_reason_is_given_for_what_no_longer_differs(found: list[str]) -> None:
    stale = [pattern for pattern in PATTERNS if not any(matches(line, pattern) for line in found)]
    assert not stale, "\n".join(["remove these from differences.yaml:", *stale])
