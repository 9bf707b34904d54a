"""Several jobs, or several runs of pipelines, side by side: what differs, and their curves in one plot each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paddlecloud.kube.argo import WORKFLOWS
from paddlecloud.kube.errors import Invalid
from paddlecloud.kube.resource import PADDLEJOBS, PODS, Object
from paddlecloud.pipelines.runs import record
from paddlecloud.sdk.outcome import ending
from paddlecloud.ui import comparing, job_curves
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.comparing import MOST_ROWS, Difference
from paddlecloud.ui.curves import Plot, plots
from paddlecloud.ui.feed import RUN

MOST = 12


class Compared(NamedTuple):
    namespace: str
    name: str


class CompareView(NamedTuple):
    section: str
    """jobs or pipelines."""
    compared: list[Compared]
    missing: list[str]
    """What was asked for and is not there, or not shown to the viewer."""
    differences: list[Difference]
    more: int
    plots: list[Plot]
    reading: bool
    problems: list[tuple[str, str]]
    unread: str
    """Jobs that have ended, whose records a form reads."""


async def load(asked: Asked) -> CompareView:
    section = "pipelines" if asked.query.get("of") == "pipelines" else "jobs"
    resource = WORKFLOWS if section == "pipelines" else PADDLEJOBS
    found: list[Object] = []
    missing = []
    for namespace, name in wanted(asked.query):
        obj = await asked.reader.get(resource, namespace, name)
        if obj is None:
            missing.append(f"{namespace}/{name}")
        else:
            found.append(obj)
    compared = [Compared(str(obj["metadata"]["namespace"]), str(obj["metadata"]["name"])) for obj in found]
    if section == "pipelines":
        facts = [comparing.facts_of_run(run, await _steps(asked, run)) for run in found]
        rows = comparing.differences(facts)
        more = max(0, len(rows) - MOST_ROWS)
        return CompareView(section, compared, missing, rows[:MOST_ROWS], more, [], False, [], "")
    rows = comparing.differences([comparing.facts_of_job(job) for job in found])
    return await _of_jobs(asked, found, compared, missing, rows)


async def _of_jobs(
    asked: Asked, jobs: Sequence[Object], compared: list[Compared], missing: list[str], rows: list[Difference]
) -> CompareView:
    curves = [await job_curves.of(asked, job, follows=True) for job in jobs]
    names = _short_names(compared)
    return CompareView(
        section="jobs",
        compared=compared,
        missing=missing,
        differences=rows[:MOST_ROWS],
        more=max(0, len(rows) - MOST_ROWS),
        plots=plots(
            dict(line for name, each in zip(names, curves, strict=True) for line in each.sources(name).items())
        ),
        reading=any(each.reading for each in curves),
        problems=[(name, each.problem) for name, each in zip(names, curves, strict=True) if each.problem],
        unread=",".join(
            f"{one.namespace}/{one.name}" for one, job in zip(compared, jobs, strict=True) if ending(job) is not None
        ),
    )


def wanted(query: Mapping[str, str]) -> list[tuple[str, str]]:
    """Of `objects=NAMESPACE/NAME,…` and of ticked boxes, `pick0=NAMESPACE/NAME`; each once."""
    named = query.get("objects", "").split(",")
    named += [value for key, value in query.items() if key.startswith("pick")]
    found = dict.fromkeys(
        (namespace, name) for each in named for namespace, slash, name in (each.partition("/"),) if namespace and name
    )
    return [*found][:MOST]


def _short_names(compared: Sequence[Compared]) -> list[str]:
    """Without the namespace, where the names alone tell them apart."""
    alone = {one.name for one in compared}
    return [one.name if len(alone) == len(compared) else f"{one.namespace}/{one.name}" for one in compared]


async def _steps(asked: Asked, run: Object) -> list[record.Step]:
    meta = run["metadata"]
    pods = await asked.reader.by_index(PODS, RUN, f"{meta['namespace']}/{meta['name']}")
    try:
        return record.steps(run, pods)
    except Invalid:
        return []  # what is known of the run itself is compared


PAGE = DashboardPage("compare", "/compare", load)
