"""docs/compatibility.md, written from `inventory.yaml`.

`python tests/manual/compatibility.py` rewrites the page. A row may only say that something passes when it names a test;
`check` finds rows that do not keep to that, and blocks of the manual without a row.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
INVENTORY = Path(__file__).with_name("inventory.yaml")
PAGE = ROOT / "docs" / "compatibility.md"
EXAMPLES = ROOT / "examples" / "manual"
KINDS = ("yaml", "command", "output", "promise")
OUTCOMES = ("passes", "differs", "impossible", "later")
PLACES = ("embedded", "cluster")


class Outcome(NamedTuple):
    kind: str
    text: str
    test: str


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


def _outcome(written: dict[str, str]) -> Outcome:
    kinds = [kind for kind in OUTCOMES if kind in written]
    kind = kinds[0] if len(kinds) == 1 and set(written) <= {kinds[0], "test"} else f"not one outcome: {written}"
    text = written.get(kind, "")
    return Outcome(kind, text, text if kind == "passes" else written.get("test", ""))


def check(inventory: Inventory) -> Iterator[str]:
    """What is wrong with the inventory; nothing when the page can be trusted."""
    for row in inventory.rows:
        where = f"{row.chapter}: {row.text.splitlines()[0]}"
        if row.what not in KINDS:
            yield f"{where}: {row.what} is none of {', '.join(KINDS)}"
        if (row.what == "yaml") != bool(row.file):
            yield f"{where}: YAML rows, and only they, name a file"
        if row.file and not (EXAMPLES / row.file).exists():
            yield f"{where}: examples/manual/{row.file} is not there"
        for place in PLACES:
            yield from (f"{where}: {place}: {fault}" for fault in _faults(getattr(row, place), inventory.parts))
    yield from _missing_blocks(inventory)


def _faults(outcome: Outcome, parts: dict[str, str]) -> Iterator[str]:
    if outcome.kind not in OUTCOMES:
        yield outcome.kind
    if outcome.kind == "later" and outcome.text not in parts:
        yield f"no part is called {outcome.text}"
    if outcome.kind == "passes" and not outcome.test:
        yield "nothing passes without a test"
    if outcome.test and not test_exists(outcome.test):
        yield f"there is no test {outcome.test}"


def _missing_blocks(inventory: Inventory) -> Iterator[str]:
    """Every fenced block of every document has a row, and no row speaks of a block that is not there."""
    named = Counter(block for row in inventory.rows for block in row.blocks)
    wanted = {
        f"{name} {number}"
        for name, document in inventory.documents.items()
        for number in range(1, document["blocks"] + 1)
    }
    prose = {f"{name} text" for name in inventory.documents}
    yield from (f"block {block} has no row" for block in sorted(wanted - set(named)))
    yield from (f"there is no block {block}" for block in sorted(set(named) - wanted - prose))


def test_exists(name: str) -> bool:
    """Whether `path::function` names a test function; parameters in brackets are not looked at."""
    path, _, function = name.partition("::")
    file = ROOT / path
    if not file.is_file():
        return False
    tree = ast.parse(file.read_text(encoding="utf-8"))
    wanted = function.partition("[")[0]
    found = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return any(node.name == wanted for node in found)


def render(inventory: Inventory) -> str:
    lines = [
        "<!-- Written by `python tests/manual/compatibility.py` from tests/manual/inventory.yaml. -->",
        "",
        "# Compatibility with the manual",
        "",
        "What the original manual shows (its YAML, its commands, what they print, what it promises) and what becomes",
        "of it here, on the embedded platform and on a cluster. *Passes* names the test that shows it. *Differs* and",
        "*not possible* say why. *Not yet* says which part of the project will bring it.",
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
    cells = [row.what, _shown(row), _words(row.embedded, parts), _words(row.cluster, parts), row.note]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _summary(inventory: Inventory) -> Iterator[str]:
    yield "| | passes | differs on purpose | not possible | not yet | all |"
    yield "|---|---|---|---|---|---|"
    for place in PLACES:
        counted = Counter(getattr(row, place).kind for row in inventory.rows)
        yield f"| {place} | " + " | ".join(str(counted[kind]) for kind in OUTCOMES) + f" | {len(inventory.rows)} |"


def _shown(row: Row) -> str:
    if row.file:
        return f"{row.text}: [{row.file}](../examples/manual/{row.file})"
    if row.what == "promise":
        return row.text
    shown = [f"`{line.strip()}`" for line in (*row.text.splitlines(), *row.output.splitlines())]
    return "<br>".join(shown)


def _words(outcome: Outcome, parts: dict[str, str]) -> str:
    if outcome.kind == "passes":
        return f"passes: {_link(outcome.test)}"
    if outcome.kind == "later":
        return f"not yet: {parts[outcome.text]}"
    word = "differs on purpose" if outcome.kind == "differs" else "not possible"
    return f"{word}: {outcome.text}" + (f" ({_link(outcome.test)})" if outcome.test else "")


def _link(test: str) -> str:
    path, _, function = test.partition("::")
    return f"[{function}](../{path})"


if __name__ == "__main__":
    PAGE.write_text(render(load()), encoding="utf-8")
