"""docs/compatibility.md, written from `inventory.yaml`.

`PYTHONPATH=tests python -m manual.compatibility` rewrites the page. A row may only say that something passes on a
platform when it names a test that runs there; `check` finds rows that do not keep to that, and blocks of the manual
without a row. Whether a test shows what its row says is for people to judge.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from . import where

ROOT = where.ROOT
INVENTORY = Path(__file__).with_name("inventory.yaml")
PAGE = ROOT / "docs" / "compatibility.md"
EXAMPLES = ROOT / "examples" / "manual"
KINDS = ("yaml", "command", "output", "promise")
OUTCOMES = ("passes", "differs", "impossible", "later")
PLACES = ("embedded", "cluster")


class Outcome(NamedTuple):
    kind: str
    text: str
    tests: tuple[str, ...]


class Row(NamedTuple):
    chapter: str
    blocks: tuple[str, ...]
    what: str
    text: str
    output: str
    file: str
    embedded: Outcome
    cluster: Outcome
    note: str


class Inventory(NamedTuple):
    documents: dict[str, dict[str, Any]]
    parts: dict[str, str]
    rows: list[Row]


def load(path: Path = INVENTORY) -> Inventory:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    rows = [_row(chapter["title"], row) for chapter in data["chapters"] for row in chapter["rows"]]
    return Inventory(data["documents"], data["parts"], rows)


def _row(chapter: str, row: dict[str, Any]) -> Row:
    blocks = row["at"] if isinstance(row["at"], list) else [row["at"]]
    return Row(
        chapter=chapter,
        blocks=tuple(blocks),
        what=row["what"],
        text=row["text"],
        output=row.get("output", ""),
        file=row.get("file", ""),
        embedded=_outcome(row["embedded"]),
        cluster=_outcome(row["cluster"]),
        note=row.get("note", ""),
    )


def _outcome(written: dict[str, Any]) -> Outcome:
    kinds = [kind for kind in OUTCOMES if kind in written]
    kind = kinds[0] if len(kinds) == 1 and set(written) <= {kinds[0], "test"} else f"not one outcome: {written}"
    if kind == "passes":
        return Outcome(kind, "", _several(written["passes"]))
    return Outcome(kind, str(written.get(kind, "")), _several(written.get("test")))


def _several(tests: str | list[str] | None) -> tuple[str, ...]:
    return (tests,) if isinstance(tests, str) else tuple(tests or ())


def check(inventory: Inventory) -> Iterator[str]:
    """What is wrong with the inventory; nothing when the page can be trusted."""
    for row in inventory.rows:
        place_in_manual = f"{row.chapter}: {row.text.splitlines()[0]}"
        if row.what not in KINDS:
            yield f"{place_in_manual}: {row.what} is none of {', '.join(KINDS)}"
        if (row.what == "yaml") != bool(row.file):
            yield f"{place_in_manual}: YAML rows, and only they, name a file"
        if row.file and not (EXAMPLES / row.file).exists():
            yield f"{place_in_manual}: examples/manual/{row.file} is not there"
        for place in PLACES:
            yield from (
                f"{place_in_manual}: {place}: {fault}" for fault in _faults(getattr(row, place), place, inventory.parts)
            )
    yield from _missing_blocks(inventory)


def _faults(outcome: Outcome, platform: str, parts: dict[str, str]) -> Iterator[str]:
    if outcome.kind not in OUTCOMES:
        yield outcome.kind
    if outcome.kind == "later" and outcome.text not in parts:
        yield f"no part is called {outcome.text}"
    if outcome.kind == "passes" and not outcome.tests:
        yield "nothing passes without a test"
    missing = [test for test in outcome.tests if not where.exists(test)]
    yield from (f"there is no test {test}" for test in missing)
    there = [test for test in outcome.tests if test not in missing and where.tier(test, platform)]
    elsewhere = [test for test in outcome.tests if not (test in missing or test in there or where.is_of_a_unit(test))]
    yield from (f"does not run on this platform: {test}" for test in elsewhere)
    if outcome.tests and not (there or missing or elsewhere):
        yield f"shown on no platform: {', '.join(outcome.tests)}"


def _missing_blocks(inventory: Inventory) -> Iterator[str]:
    """Every fenced block of every document has a row, and no row names a block that is not there."""
    named = Counter(block for row in inventory.rows for block in row.blocks)
    wanted = {
        f"{name} {number}"
        for name, document in inventory.documents.items()
        for number in range(1, document["blocks"] + 1)
    }
    prose = {f"{name} text" for name in inventory.documents}
    yield from (f"block {block} has no row" for block in sorted(wanted - set(named)))
    yield from (f"there is no block {block}" for block in sorted(set(named) - wanted - prose))


def render(inventory: Inventory) -> str:
    lines = [
        "<!-- Written by `PYTHONPATH=tests python -m manual.compatibility` from tests/manual/inventory.yaml. -->",
        "",
        "# Compatibility with the manual",
        "",
        "What the original manual shows (its YAML, its commands, what they print, what it promises) and what becomes",
        "of it here, on the embedded platform and on a cluster. *Passes* names the tests that show it there. *Differs*",
        "and *not possible* say why. *Not yet* says which part of the project will bring it.",
        "",
        "Behind each test stands when it runs: at *every change*, in the *full tier* ([when that last",
        "ran](full-tier.md)), or *on a GPU*, on a machine that has one. *No platform* marks a unit test, named beside",
        "one that runs on the platform.",
        "Where the manual's namespace does not matter, tests use one of their own; the manual's buckets lie on a local",
        "S3 server, with small data.",
        "",
        *_summary(inventory),
        "",
    ]
    for chapter, rows in itertools.groupby(inventory.rows, key=lambda row: row.chapter):
        lines += [f"## {chapter}", "", "| | In the manual | Embedded | Cluster | Note |", "|---|---|---|---|---|"]
        lines += [_line(row, inventory.parts) for row in rows]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _line(row: Row, parts: dict[str, str]) -> str:
    outcomes = (_words(getattr(row, platform), platform, parts) for platform in PLACES)
    cells = [row.what, _shown(row), *outcomes, row.note]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _summary(inventory: Inventory) -> Iterator[str]:
    parts = " | ".join(f"· {tier}" for tier in where.TIERS)
    yield f"| | passes | {parts} | differs on purpose | not possible | not yet | all |"
    yield "|---" * (len(where.TIERS) + len(OUTCOMES) + 2) + "|"
    for place in PLACES:
        found = [getattr(row, place) for row in inventory.rows]
        counted = Counter(outcome.kind for outcome in found)
        shown = Counter(rarest(outcome, place) for outcome in found if outcome.kind == "passes")
        figures = [counted["passes"], *(shown[tier] for tier in where.TIERS), *(counted[kind] for kind in OUTCOMES[1:])]
        yield f"| {place} | " + " | ".join(map(str, figures)) + f" | {len(found)} |"


def rarest(outcome: Outcome, platform: str) -> str:
    """When a row is shown as a whole: when the least often run of its tests runs."""
    return max((found for test in outcome.tests if (found := where.tier(test, platform))), key=where.TIERS.index)


def _shown(row: Row) -> str:
    if row.file:
        return f"{row.text}: [{row.file}](../examples/manual/{row.file})"
    if row.what == "promise":
        return row.text
    shown = [f"`{line.strip()}`" for line in (*row.text.splitlines(), *row.output.splitlines())]
    return "<br>".join(shown)


def _words(outcome: Outcome, platform: str, parts: dict[str, str]) -> str:
    links = ", ".join(_link(test, platform) for test in outcome.tests)
    if outcome.kind == "passes":
        return f"passes: {links}"
    if outcome.kind == "later":
        return f"not yet: {parts[outcome.text]}"
    word = "differs on purpose" if outcome.kind == "differs" else "not possible"
    return f"{word}: {outcome.text}" + (f" ({links})" if links else "")


def _link(test: str, platform: str) -> str:
    path, _, function = test.partition("::")
    return f"[{function}](../{path}) *{where.tier(test, platform) or 'no platform'}*"


if __name__ == "__main__":
    PAGE.write_text(render(load()), encoding="utf-8")
