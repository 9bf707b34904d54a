"""Notes between the lines of a rank that was restarted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from paddlecloud.cli.render.log_lines import Writer
from paddlecloud.cli.session import Session
from paddlecloud.sdk.logs import Line, LogOptions
from paddlecloud.sdk.members import Member


def life(rank: int, run: int) -> Member:
    pod = {"metadata": {"name": f"job-worker-{rank}", "uid": f"{rank}-{run}"}}
    return Member(pod, "worker", rank)


RUNS: dict[str, tuple[list[int], list[str]]] = {
    "every run wrote": ([1, 2, 3], ["restarted, run 2", "restarted, run 3"]),
    "the second is silent": ([1, 3], ["restarted, run 2, without output", "restarted, run 3"]),
    "the first is silent": ([2, 3], ["run 1, without output", "restarted, run 2", "restarted, run 3"]),
    "the last is silent": ([1, 2], ["restarted, run 2", "restarted, run 3, without output"]),
}


def notes_of(writing: list[int], options: LogOptions | None = None) -> list[str]:
    said: list[str] = []
    session: Any = SimpleNamespace(
        args=SimpleNamespace(timestamps=False), paint=lambda text, colour: text, note=said.append
    )
    writer = Writer(cast(Session, session), as_json=False, options=options)
    writer.introduce([life(0, run) for run in (1, 2, 3)])
    for run in writing:
        writer.write(Line("", life(0, run), "a line"))
    writer.close()
    return said


@pytest.mark.parametrize(("writing", "notes"), RUNS.values(), ids=RUNS.keys())
def test_runs_are_counted_by_pods_whether_they_wrote_or_not(writing: list[int], notes: list[str]) -> None:
    assert notes_of(writing) == [f"--- worker-0: {note} ---" for note in notes]


@pytest.mark.parametrize("options", [LogOptions(tail=1), LogOptions(since=60.0)], ids=["tail", "since"])
def test_a_run_of_which_no_line_is_asked_for_is_not_called_silent(options: LogOptions) -> None:
    assert notes_of([3], options) == ["--- worker-0: restarted, run 3 ---"]
    assert notes_of([1], options) == []
