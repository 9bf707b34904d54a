"""What came of every case when all of them last ran: a line of JSON each, in a file for each platform."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from . import verdict
from .verdict import Verdict

EMBEDDED = Path(__file__).with_name("embedded.jsonl")
CLUSTER = Path(__file__).with_name("argo.jsonl")


def load(path: Path) -> dict[str, Verdict]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {line["name"]: verdict.read(line) for line in map(json.loads, lines)}


def save(path: Path, verdicts: Mapping[str, Verdict]) -> None:
    lines = [json.dumps(verdict.document(name, each), ensure_ascii=False) for name, each in sorted(verdicts.items())]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
