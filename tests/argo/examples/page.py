"""docs/argo-examples.md: what came of each of Argo's files on real Argo and on the embedded platform. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .comparison import Compared, Result, compare
from .verdict import DONE, LIMIT, Verdict

ARGO = "3.7.18"
_LONGEST = 160


class Row(NamedTuple):
    name: str
    real: Verdict
    ours: Verdict | None
    compared: Compared


def rows(real: Mapping[str, Verdict], ours: Mapping[str, Verdict]) -> list[Row]:
    return [
        Row(name, verdict, ours.get(name), _compared(name, verdict, ours.get(name))) for name, verdict in real.items()
    ]


def _compared(name: str, real: Verdict, ours: Verdict | None) -> Compared:
    return compare(real, ours, name) if ours is not None else Compared(Result.UNJUDGED, "not run")


def render(real: Mapping[str, Verdict], ours: Mapping[str, Verdict], reasons: Mapping[str, str]) -> str:
    """`reasons` say why a case differs, where that is known and meant."""
    found = rows(real, ours)
    return "\n".join([*_head(found), *_tables(found, reasons)]) + "\n"


def share(found: list[Row]) -> tuple[int, int]:
    """How many of those that real Argo completes or refuses end alike, and how many these are."""
    counted = Counter(row.compared.result for row in found if _judged(row))
    return counted[Result.SAME], sum(counted.values())


def _judged(row: Row) -> bool:
    return row.real.judges


def _head(found: list[Row]) -> Iterator[str]:
    same, judged = share(found)
    yield "<!-- Written by `make test-argo` (tests/argo/examples/page.py). -->"
    yield ""
    yield "# Argo's examples judge the embedded platform"
    yield ""
    yield f"Each workflow of Argo {ARGO}'s `examples` and of the folders of its end-to-end tests runs on real Argo on"
    yield "the test cluster and on the embedded platform. Compared are the phase of the workflow, every node by display"
    yield "name, type and phase, and all outputs."
    yield ""
    yield f"Real Argo completes or refuses {judged} of {len(found)} there;"
    yield f"**{same} of them ({100 * same / max(judged, 1):.1f} %) end the same way here.**"
    yield from _others([row for row in found if not _judged(row)])
    yield ""
    yield "Images are stand-ins of this machine's programs on both platforms, and Python's dice are fixed. `refused` is"
    yield "an invalid workflow: Argo's controller ends it with an error, the embedded platform does not create it."


def _others(found: list[Row]) -> Iterator[str]:
    """Why real Argo judges nothing there, as far as the records say."""
    outside = [row for row in found if row.real.outside]
    late = [row for row in found if row.real.out_of_time]
    here = [row for row in late if row.ours is not None and row.ours.phase in DONE]
    yield f"Of the other {len(found)}, {len(outside)} need a network, an image or a service that neither platform has;"
    ended = f"({len(here)} of them end here)"
    yield f"{len(late)} were not over on real Argo after {LIMIT:.0f} s, the limit of a run {ended};"
    rest = len(found) - len(outside) - len(late)
    yield f"{rest} wait, with no pod that runs, for a person or for what their pods lack."


def _tables(found: list[Row], reasons: Mapping[str, str]) -> Iterator[str]:
    folders = dict.fromkeys(_folder(row.name) for row in found)
    for folder in folders:
        there = [row for row in found if _folder(row.name) == folder]
        same, judged = share(there)
        yield from ("", f"## {folder}", "", f"{same} of {judged} the same.", "")
        yield from ("| File | Real Argo | Embedded | |", "|---|---|---|---|")
        for row in there:
            yield _line(row, folder, reasons.get(row.name, ""))


def _folder(name: str) -> str:
    return "examples" if name.startswith("examples/") else "/".join(name.split("/")[:3])


def _line(row: Row, folder: str, reason: str) -> str:
    ours = "–" if row.ours is None else row.ours.phase
    note = row.compared.result.value
    if row.compared.result is Result.UNJUDGED and row.real.out_of_time:
        note += f": not over on real Argo after {LIMIT:.0f} s"
    if row.compared.result is not Result.SAME:
        note += f": {_shortened(reason or row.compared.difference)}"
    return f"| {row.name.removeprefix(folder + '/')} | {row.real.phase} | {ours} | {note} |"


def _shortened(text: str) -> str:
    line = " ".join(text.replace("|", "\\|").split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
