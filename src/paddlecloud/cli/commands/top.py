"""`pdc top`: what nodes, pods and PaddleJobs use now, from the metrics API (metrics.k8s.io).

pdc top nodes
pdc top pods [NAME] [-A] [-l LABELS] [--containers] [--sort-by cpu|memory]
pdc top pdj [NAME]       the pods of each job together, with how far its training is
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from paddlecloud.api.names import JOB_LABEL, ROLES
from paddlecloud.api.training_pod import mapping
from paddlecloud.cli.failures import NOT_FOUND, OK, CliError, attempting
from paddlecloud.cli.objects.tenant_usage import requests
from paddlecloud.cli.parsing import Parsers, add_all_namespaces, add_selectors
from paddlecloud.cli.render import output, table
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import NotFound, ServiceUnavailable
from paddlecloud.kube.quantity import MILLI, ONE, parse
from paddlecloud.kube.resource import NODE_METRICS, NODES, PADDLEJOBS, POD_METRICS, PODS, Object, Resource

MEBI = 1 << 20
SUBJECTS = {
    **dict.fromkeys(("node", "nodes", "no"), "nodes"),
    **dict.fromkeys(("pod", "pods", "po"), "pods"),
    **dict.fromkeys(("pdj", "paddlejob", "paddlejobs", "job", "jobs"), "pdj"),
}


class Usage(NamedTuple):
    """CPU in thousandths of a core, memory in bytes."""

    cpu: int = 0
    memory: int = 0

    def __add__(self, other: object) -> Usage:
        assert isinstance(other, Usage)
        return Usage(self.cpu + other.cpu, self.memory + other.memory)


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("top", description=__doc__, usage="pdc top nodes|pods|pdj [NAME] [flags]")
    parser.add_argument("what", choices=tuple(SUBJECTS), metavar="nodes|pods|pdj")
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("--containers", action="store_true", help="pods: each container by itself")
    parser.add_argument("--sort-by", choices=("cpu", "memory"), help="the largest first")
    parser.add_argument("--no-headers", action="store_true")
    add_all_namespaces(parser)
    add_selectors(parser)
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    with attempting(f"measure {args.what}"):
        records = TOPS[SUBJECTS[args.what]](session)
    if args.sort_by:
        key = {"cpu": "cpuMillicores", "memory": "memoryBytes"}[args.sort_by]
        records.sort(key=lambda record: -(record.get(key) or 0))
    if fmt.name:
        output.print_report(session, "TopReport", {"items": records})
        return OK
    if not records:
        session.note("nothing there to measure")
        return OK
    columns = COLUMNS[SUBJECTS[args.what]]
    shown = [(header, field) for header, field in columns if any(field in record for record in records)]
    rows = [[_cell(field, record.get(field)) for _, field in shown] for record in records]
    session.print(table.render([header for header, _ in shown], rows, headers=not args.no_headers))
    return OK


# What is measured


def nodes(session: Session) -> list[dict[str, Any]]:
    used = {str(item["metadata"]["name"]): usage(item.get("usage")) for item in _metrics(session, NODE_METRICS, None)}
    records = []
    for node in _objects(session, NODES, None):
        name = str(node["metadata"]["name"])
        record: dict[str, Any] = {"name": name}
        if name in used:
            room = usage((node.get("status") or {}).get("allocatable"))
            record |= _figures(used[name])
            record["cpuPercent"] = _percent(used[name].cpu, room.cpu)
            record["memoryPercent"] = _percent(used[name].memory, room.memory)
        records.append(record)
    return records


def pods(session: Session) -> list[dict[str, Any]]:
    records = []
    for item in _metrics(session, POD_METRICS, session.scope):
        meta = item["metadata"]
        record: dict[str, Any] = {"namespace": meta.get("namespace")} if session.scope is None else {}
        containers = [(str(one["name"]), usage(one.get("usage"))) for one in item.get("containers") or ()]
        if session.args.containers:
            records += [{**record, "pod": meta["name"], "name": name, **_figures(one)} for name, one in containers]
        else:
            total = sum((one for _, one in containers), Usage())
            records.append({**record, "name": meta["name"], **_figures(total)})
    return records


def jobs(session: Session) -> list[dict[str, Any]]:
    """A job without pods, or a server without metrics, still has progress to show."""
    used = _usage_by_job(session)
    records = []
    for job in _objects(session, PADDLEJOBS, session.scope):
        meta, status = job["metadata"], job.get("status") or {}
        record: dict[str, Any] = {"namespace": meta.get("namespace")} if session.scope is None else {}
        record |= {"name": meta["name"], "status": status.get("phase"), "pods": _pods_wanted(job.get("spec") or {})}
        if (found := used.get((meta.get("namespace"), meta["name"]))) is not None:
            record |= _figures(found)
        if gpus := _gpus(job.get("spec") or {}):
            record["gpus"] = gpus
        records.append({**record, **_progress(status)})
    return records


def _usage_by_job(session: Session) -> dict[tuple[str, str], Usage]:
    try:
        measured = _metrics(session, POD_METRICS, session.scope, named=False)
    except CliError:
        return {}
    running = session.api.do(session.api.client.list(PODS, session.scope, label_selector=JOB_LABEL, limit=500)).items
    owners = {
        (pod["metadata"].get("namespace"), pod["metadata"]["name"]): pod["metadata"]["labels"][JOB_LABEL]
        for pod in running
    }
    totals: dict[tuple[str, str], Usage] = {}
    for item in measured:
        namespace = item["metadata"].get("namespace")
        job = owners.get((namespace, item["metadata"]["name"]))
        if job is not None:
            parts = (usage(one.get("usage")) for one in item.get("containers") or ())
            totals[namespace, job] = totals.get((namespace, job), Usage()) + sum(parts, Usage())
    return totals


def _progress(status: Object) -> dict[str, Any]:
    """What the training program reports of itself, through the controller."""
    reported = status.get("progress") or {}
    record: dict[str, Any] = {}
    if reported.get("done") or reported.get("step") is not None:
        record["progress"] = reported.get("done") or f"step {reported['step']}"
    if reported.get("epoch") is not None:
        record["epoch"] = (
            f"{reported['epoch']}/{reported['totalEpochs']}" if reported.get("totalEpochs") else str(reported["epoch"])
        )
    loss = reported.get("loss", (reported.get("metrics") or {}).get("loss"))
    given = {"etaSeconds": reported.get("etaSeconds"), "loss": loss}
    return {**record, **{name: value for name, value in given.items() if value is not None}}


def _pods_wanted(spec: Object) -> int:
    blocks = [spec[role] for role in ROLES if isinstance(spec.get(role), dict)]
    return sum(1 if block.get("replicas") is None else int(block["replicas"]) for block in blocks)


def _gpus(spec: Object) -> int:
    total = 0
    for role in ROLES:
        block = mapping(spec.get(role))
        each = requests(mapping(mapping(block.get("template")).get("spec"))).get("nvidia.com/gpu", 0.0)
        total += int(each) * (1 if block.get("replicas") is None else int(block["replicas"]))
    return total


# Reading


def _metrics(session: Session, resource: Resource, namespace: str | None, *, named: bool = True) -> list[Object]:
    try:
        return _objects(session, resource, namespace, named=named)
    except (NotFound, ServiceUnavailable) as error:
        if (getattr(error, "details", None) or {}).get("name"):
            raise
        raise CliError(
            "the server does not measure anything",
            why="it has no metrics.k8s.io",
            next="install metrics-server on this cluster",
            exit_code=NOT_FOUND,
            reason="NoMetrics",
        ) from error


def _objects(session: Session, resource: Resource, namespace: str | None, *, named: bool = True) -> list[Object]:
    api, args = session.api, session.args
    if args.name and named:
        return [api.do(api.client.get(resource, args.name, session.namespace if resource.namespaced else None))]
    selectors = {"label_selector": args.selector, "field_selector": args.field_selector} if named else {}
    return api.do(api.client.list(resource, namespace, limit=500, **selectors)).items


def usage(amounts: Any) -> Usage:
    """CPU is rounded up and memory kept, as kubectl does."""
    given = amounts if isinstance(amounts, dict) else {}
    return Usage(-(-parse(given.get("cpu") or 0) // MILLI), parse(given.get("memory") or 0) // ONE)


def _figures(used: Usage) -> dict[str, Any]:
    return {"cpuMillicores": used.cpu, "memoryBytes": used.memory}


def _percent(part: int, whole: int) -> int | None:
    return part * 100 // whole if whole else None


# Showing


def _cell(field: str, value: Any) -> str:
    if value is None:
        return "-"
    return SHOWN[field](value) if field in SHOWN else str(value)


def _eta(seconds: int) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


SHOWN: dict[str, Callable[[Any], str]] = {
    "cpuMillicores": lambda value: f"{value}m",
    "memoryBytes": lambda value: f"{value // MEBI}Mi",
    "cpuPercent": lambda value: f"{value}%",
    "memoryPercent": lambda value: f"{value}%",
    "etaSeconds": _eta,
    "loss": lambda value: f"{value:.4g}",
}
_USED = (("CPU(cores)", "cpuMillicores"), ("Memory(bytes)", "memoryBytes"))
COLUMNS: dict[str, Iterable[tuple[str, str]]] = {
    "nodes": (
        ("Name", "name"),
        ("CPU(cores)", "cpuMillicores"),
        ("CPU(%)", "cpuPercent"),
        ("Memory(bytes)", "memoryBytes"),
        ("Memory(%)", "memoryPercent"),
    ),
    "pods": (("Namespace", "namespace"), ("Pod", "pod"), ("Name", "name"), *_USED),
    "pdj": (
        ("Namespace", "namespace"),
        ("Name", "name"),
        ("Status", "status"),
        ("Pods", "pods"),
        *_USED,
        ("GPU", "gpus"),
        ("Progress", "progress"),
        ("Epoch", "epoch"),
        ("ETA", "etaSeconds"),
        ("Loss", "loss"),
    ),
}
TOPS = {"nodes": nodes, "pods": pods, "pdj": jobs}
