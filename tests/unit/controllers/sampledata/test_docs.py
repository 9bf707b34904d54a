"""What the guide to sample sets explains: every reason that the two controllers give, and every field in Chinese."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.controllers.sampledata.sampleset.warm import _VERDICTS

ROOT = Path(__file__).parents[4]
CONTROLLERS = ROOT / "src" / "paddlecloud" / "controllers"
SAYING = {"add_event": (0,), "condition": (0, 2), "report_problem": (0, 1), "end": (1,)}
"""Methods of a draft, and which of their arguments are reasons or types of conditions."""


def written(page: str) -> set[str]:
    """The names of a page in backticks; `Create{PV,PVC}Successfully` stands for two."""
    found = set()
    for text in re.findall(r"`([A-Za-z{},]+)`", (ROOT / "docs" / page).read_text(encoding="utf-8")):
        head, brace, rest = text.partition("{")
        inner, _, tail = rest.partition("}")
        found |= {head + part + tail for part in inner.split(",")} if brace else {text}
    return found


def said() -> Iterator[str]:
    for file in sorted(CONTROLLERS.glob("sampledata/**/*.py")):
        for call in ast.walk(ast.parse(file.read_text())):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            places = SAYING.get(call.func.attr, ())
            values = [call.args[place] for place in places if place < len(call.args)]
            values += [word.value for word in call.keywords if word.arg == "event"]
            for value in values:
                yield from (part.value for part in ast.walk(value) if isinstance(part, ast.Constant))


@pytest.mark.parametrize("page", ["sampleset.md", "sampleset.zh.md"])
def test_every_reason_is_explained(page: str) -> None:
    jobs = ("SyncJob", "WarmupJob", "ClearJob", "RmrJob")
    known = written(page)
    reasons = {reason for reason in said() if isinstance(reason, str) and re.fullmatch(r"[A-Z][A-Za-z]+", reason)}
    assert {"Valid", "SecretIncomplete", "MissSchedule", "ErrorDoSyncJob"} <= reasons, "the source was not understood"
    parts = {"Create", "Do", "Error", "ErrorCreate", "ErrorDo", "Successfully", "AlreadyExist", "PVC"}
    whole = reasons - parts
    whole |= {reason for _, reason, _ in _VERDICTS.values()}
    whole |= {f"{head}{job}{tail}" for job in jobs for head, tail in (("Do", "Successfully"), ("ErrorDo", ""))}
    assert whole - known == set()


def fields(text: str, *, heading: str) -> dict[str, list[str]]:
    """The fields of a page by section."""
    sections = re.split(rf"(?m)^{heading} ", text)[1:]
    found = {part.partition("\n")[0]: re.findall(r"(?m)^\| `([A-Za-z-]+)` \|", part) for part in sections}
    return {name: names for name, names in found.items() if names}


@pytest.mark.parametrize("kind", ["SampleSet", "SampleJob"])
def test_the_chinese_page_has_every_field(kind: str) -> None:
    english = (ROOT / "docs" / "kinds" / f"{kind.lower()}.md").read_text(encoding="utf-8")
    chinese = (ROOT / "docs" / "sampleset-fields.zh.md").read_text(encoding="utf-8")
    part = chinese.partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
    assert fields(part, heading="###") == fields(english, heading="##")
