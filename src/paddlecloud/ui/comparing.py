"""Several jobs, or runs of pipelines, side by side: what differs between them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import moment_of
from paddlecloud.pipelines.runs.record import Step
from paddlecloud.ui import job_rows, run_rows
from paddlecloud.ui.formatting import duration, number

LONGEST = 300
MOST_ROWS = 300
MOST_FACTS = 5000
"""Of one object."""
_NOT_COMPARED = frozenset({"suspend", "terminationMessagePath", "terminationMessagePolicy"})


class Difference(NamedTuple):
    name: str
    values: list[str]
    """In the order of what is compared; empty where there is none."""


def differences(facts: Sequence[Mapping[str, str]]) -> list[Difference]:
    names = dict.fromkeys(name for each in facts for name in each)
    rows = (Difference(name, [each.get(name, "") for each in facts]) for name in names)
    return [row for row in rows if len(set(row.values)) > 1]


def facts_of_job(job: Object) -> dict[str, str]:
    """Its status in short, and every field of its spec, by its path."""
    row, status = job_rows.row_of(job), job.get("status") or {}
    began, ended = moment_of(status.get("startTime")), moment_of(status.get("completionTime"))
    progress = status.get("progress") or {}
    short = {
        "status": row.phase,
        "took": duration(ended - began) if began is not None and ended is not None else "",
        "restarts": str(row.restarts or ""),
        "progress": row.progress,
        "loss": number(progress.get("loss")),
        "samples/s": number(progress.get("samplesPerSecond")),
        **{f"metrics.{name}": number(value) for name, value in (progress.get("metrics") or {}).items()},
    }
    labels = {f"labels.{key}": str(value) for key, value in (job["metadata"].get("labels") or {}).items()}
    return {**short, **labels, **_fields(job.get("spec") or {})}


def facts_of_run(run: Object, steps: Sequence[Step]) -> dict[str, str]:
    """Its parameters, and of each step what it gave and took. Steps are the same by name."""
    row = run_rows.row_of(run)
    found = {"status": row.phase, "took": duration(row.seconds)}
    found |= {f"parameters.{name}": value for name, value in row.parameters}
    for step in steps:
        if step.is_leaf and len(found) < MOST_FACTS:
            found[f"{step.name}: status"] = step.phase
            found[f"{step.name}: took"] = duration(step.seconds)
            found |= {f"{step.name}: {name}": _cut(value) for name, value in step.outputs.items()}
            if step.image:
                found[f"{step.name}: image"] = step.image
    return found


def _fields(spec: Object) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _leaves(spec, "", 0):
        if len(found) >= MOST_FACTS:
            break
        found[name] = _cut(value)
    return found


def _leaves(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Items of lists are known by their name, where they have one: the order of variables means nothing."""
    if depth > 20:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in _NOT_COMPARED:
                yield from _leaves(inner, f"{path}.{name}" if path else str(name), depth + 1)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for place, each in enumerate(value):
            name = each.get("name", place) if isinstance(each, dict) else place
            rest = {key: inner for key, inner in each.items() if key != "name"} if isinstance(each, dict) else each
            yield from _leaves(rest, f"{path}[{name}]", depth + 1)
    elif isinstance(value, list):
        yield path, " ".join(map(str, value))
    else:
        yield path, value


def _cut(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
