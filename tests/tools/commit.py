"""The commit that a record of a run names."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORDS = (
    "tests/cluster/seen.yaml", "docs/full-tier.md",
    "tests/e2e/embedded.txt", "tests/e2e/cluster.txt", "docs/conformance.md",
    "tests/argo/examples/argo.jsonl", "tests/argo/examples/embedded.jsonl", "docs/argo-examples.md",
)  # fmt: skip
"""What runs write themselves."""


def name(root: Path = ROOT) -> str:
    """Its short name, with a `+` where there are changes on top of it, other than of records."""
    changed = _git(root, "status", "--porcelain", "--", ".", *(f":!{path}" for path in RECORDS))
    return _git(root, "rev-parse", "--short", "HEAD") + ("+" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
