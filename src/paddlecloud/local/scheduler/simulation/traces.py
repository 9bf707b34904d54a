"""Loads to try a scheduler on: a table of jobs (CSV), or the generator files of Kueue's performance test (YAML). Pure.

A cohort of Kueue becomes a parent queue, nominal quota `deserved`, quota plus borrowing limit `capability`; its unit is
called cpu here.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.api.durations import SECONDS
from paddlecloud.kube.quantity import QuantityError, parse
from paddlecloud.kube.resource import QUEUES, Object

_SHORT = {"gpu": "nvidia.com/gpu"}
KNOWN = ("name", "arrival", "runtime", "pods", "min", "queue", "priority", "class")
"""Columns of a CSV that are no resources."""


class TraceError(ValueError):
    """The file cannot be understood; the message names the place."""


@dataclass(frozen=True, slots=True)
class Job:
    """`pods` pods that run for `runtime` seconds from the moment `least` of them are placed."""

    name: str
    arrival: float
    runtime: float
    requests: Mapping[str, str]
    pods: int = 1
    least: int = 1
    queue: str = ""
    priority: int = 0
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    jobs: tuple[Job, ...]
    queues: tuple[Object, ...] = field(default=())


def load(text: str, *, name: str) -> Trace:
    """By its file name: `.csv` is a table of jobs, everything else YAML."""
    return from_csv(text) if name.lower().endswith(".csv") else from_yaml(text)


def from_csv(text: str) -> Trace:
    """Columns: name, arrival, runtime, pods, min, queue, priority, class; every other column is a resource of a pod."""
    reader = csv.DictReader(io.StringIO(text))
    if not reader.fieldnames or "runtime" not in reader.fieldnames:
        raise TraceError("the first line must name the columns, runtime among them: name,arrival,runtime,pods,cpu,gpu")
    jobs: dict[str, Job] = {}
    for number, row in enumerate(reader, start=2):
        try:
            job = _row(row, number)
        except (ValueError, QuantityError) as error:
            raise TraceError(f"line {number}: {error}") from error
        if job.name in jobs:
            raise TraceError(f"line {number}: there is a job called {job.name!r} already")
        jobs[job.name] = job
    return Trace(tuple(jobs.values()))


def _row(row: Mapping[str, str | None], number: int) -> Job:
    given = {key: (value or "").strip() for key, value in row.items() if key}
    pods = int(given.get("pods") or 1)
    requests = {_SHORT.get(name, name): value for name, value in given.items() if name not in KNOWN and value}
    for value in requests.values():
        parse(value)
    return Job(
        name=given.get("name") or f"job-{number - 1}",
        arrival=seconds(given.get("arrival") or "0"),
        runtime=seconds(given["runtime"]),
        requests=requests,
        pods=pods,
        least=int(given.get("min") or pods),
        queue=given.get("queue") or "",
        priority=int(given.get("priority") or 0),
        kind=given.get("class") or "",
    )


def seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?", text)
    if found is None:
        raise ValueError(f"{text!r} is not a time such as 90, 200ms or 1.5h")
    return float(found[1]) * SECONDS[found[2] or "s"]


def from_yaml(text: str) -> Trace:
    """Kueue's generator: cohorts of queue sets, each with sets of workloads that arrive at an interval."""
    import yaml

    try:
        body = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise TraceError(f"not YAML: {error}") from error
    cohorts = body.get("cohorts") if isinstance(body, dict) else body
    if not isinstance(cohorts, list):
        raise TraceError("no list of cohorts: a generator file has cohorts, queuesSets, workloadsSets")
    queues: list[Object] = []
    jobs: list[Job] = []
    try:
        for entry in cohorts:
            for number in range(int(entry.get("count", 1))):
                name = f"{entry.get('className', 'cohort')}-{number}"
                made, work = _cohort(name, entry)
                queues += made
                jobs += work
    except (KeyError, TypeError, AttributeError) as error:
        raise TraceError(f"not a generator file of Kueue: {error!r}") from error
    return Trace(tuple(sorted(jobs, key=lambda job: job.arrival)), tuple(queues))


def _cohort(name: str, entry: Mapping[str, Any]) -> tuple[list[Object], list[Job]]:
    queues: list[Object] = []
    jobs: list[Job] = []
    total = 0
    for kind in entry["queuesSets"]:
        for number in range(int(kind.get("count", 1))):
            queue = f"{name}-{kind.get('className', 'queue')}-{number}"
            quota = int(kind["nominalQuota"])
            total += quota
            spec: Object = {"parent": name, "deserved": {"cpu": str(quota)}}
            if kind.get("borrowingLimit") is not None:
                spec["capability"] = {"cpu": str(quota + int(kind["borrowingLimit"]))}
            spec["reclaimable"] = kind.get("reclaimWithinCohort", "Any") != "Never"
            queues.append(_queue(queue, spec))
            jobs += _workloads(queue, kind)
    limit = {"cpu": str(total)}
    return [_queue(name, {"capability": limit, "deserved": limit}), *queues], jobs


def _workloads(queue: str, kind: Mapping[str, Any]) -> Iterator[Job]:
    for sets in kind["workloadsSets"]:
        for number in range(int(sets["count"])):
            for work in sets["workloads"]:
                yield Job(
                    name=f"{queue}-{work.get('className', 'job')}-{number}",
                    arrival=number * float(sets.get("creationIntervalMs", 0)) / 1000,
                    runtime=float(work["runtimeMs"]) / 1000,
                    requests={"cpu": str(work.get("request", 1))},
                    queue=queue,
                    priority=int(work.get("priority", 0)),
                    kind=str(work.get("className", "")),
                )


def _queue(name: str, spec: Object) -> Object:
    return {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
