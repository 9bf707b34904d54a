"""Sets of completion indexes as a status writes them: `0-3,5,7-8`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

LABEL = "batch.kubernetes.io/job-completion-index"


def parse_indexes(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Neighbours are joined by a comma, three and more by a dash, as Kubernetes writes them."""
    runs: list[list[int]] = []
    for index in sorted(set(indexes)):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)
