"""`pdc simulate`: what the scheduler would do, without doing it.

  pdc simulate                             one round on the cluster as it is: who would go where, who waits and why
  pdc simulate --trace jobs.csv            a load on the nodes of the cluster, in simulated time
  pdc simulate --trace generator.yaml --nodes 100 --capacity cpu=32,memory=128Gi,pods=250

A CSV has a line for each job: name,arrival,runtime,pods,min,queue,priority,class and any resources (cpu, memory, gpu).
A YAML file is a generator of Kueue's performance test. With --nodes no cluster is asked.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecloud.cli.failures import InputError, UsageError, attempting
from paddlecloud.cli.objects.node_values import quantities
from paddlecloud.cli.parsing import Parsers, duration, number
from paddlecloud.cli.render import output, table
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import Object
from paddlecloud.kube.wording import cause_of

if TYPE_CHECKING:
    from paddlecloud.local.scheduler.simulation.report import Report, Waits
    from paddlecloud.local.scheduler.simulation.traces import Trace

POLICIES = ("spread", "pack")
SHOWN = 20


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("simulate", description=__doc__)
    parser.add_argument("--trace", type=Path, metavar="FILE", help="jobs to run: .csv, or a generator in YAML")
    parser.add_argument("--nodes", type=number(1, 100_000), metavar="N", help="nodes instead of the cluster's")
    parser.add_argument("--capacity", type=quantities, metavar="cpu=…,…", help="what each of --nodes has")
    parser.add_argument("--policy", choices=POLICIES, default="spread", help="which node to prefer (default: spread)")
    parser.add_argument("--until", type=duration, metavar="TIME", help="stop the clock there")
    parser.add_argument(
        "--tick", type=duration, default=0.05, metavar="TIME", help="events this close count as one (default: 50ms)"
    )
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    if args.capacity and not args.nodes:
        raise UsageError("--capacity says what each of --nodes has", next="pdc simulate --nodes N --capacity …")
    if args.trace is None:
        if args.nodes:
            raise UsageError("--nodes needs a --trace to run on them", next="pdc simulate --help")
        return _one_round(session, args, fmt)
    trace = _load(args.trace)
    with attempting("simulate"):
        nodes, queues, running = _world(session, args)
    from paddlecloud.local.scheduler.decision.scores import POLICIES as policies
    from paddlecloud.local.scheduler.simulation.simulation import Simulation

    simulation = Simulation(
        nodes,
        trace.jobs,
        queues=[*queues, *trace.queues],
        running=running,
        policy=policies[args.policy],
        tick=args.tick,
    )
    report = simulation.run(until=args.until if args.until is not None else float("inf"))
    if fmt.name:
        output.print_report(session, "SimulationReport", _body(report, args))
    else:
        _print(session, report)
    return 0


def _load(path: Path) -> Trace:
    from paddlecloud.local.scheduler.simulation.traces import TraceError, load

    try:
        return load(path.read_text(), name=path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}", why=cause_of(error)) from error
    except TraceError as error:
        raise InputError(f"{path} is no trace", why=str(error), next="pdc simulate --help") from error


def _world(session: Session, args: argparse.Namespace) -> tuple[list[Object], list[Object], list[Object]]:
    """Nodes, queues and pods that stay: made up, or the cluster's."""
    if args.nodes:
        import time

        from paddlecloud.local.nodes.marks import SIMULATED
        from paddlecloud.local.nodes.objects import new_node

        made = [
            new_node(f"node-{index}", SIMULATED, capacity=args.capacity or {}, now=time.time())
            for index in range(1, args.nodes + 1)
        ]
        return [{**node, "spec": {}} for node in made], [], []
    from paddlecloud.cli.render.scheduling import fetch
    from paddlecloud.local.scheduler.state.snapshot import takes_room

    cluster = fetch(session)
    return cluster.nodes, cluster.queues, [pod for pod in cluster.pods if takes_room(pod)]


# A load


def _print(session: Session, report: Report) -> None:
    waits = [(f"queue {name}", entry) for name, entry in report.by_queue.items()]
    waits += [(f"class {name}", entry) for name, entry in report.by_class.items()]
    rows = [
        [name, str(w.jobs), *(f"{seconds:.1f}s" for seconds in (w.mean, w.median, w.p95, w.longest))]
        for name, w in waits[:SHOWN]
    ]
    session.print(table.render(["WAITED", "JOBS", "MEAN", "MEDIAN", "P95", "LONGEST"], rows, headers=True))
    if len(waits) > SHOWN:
        session.note(f"… and {len(waits) - SHOWN} more; -o json has all of them")
    session.print()
    session.print(f"makespan     {report.makespan:.1f}s, {report.finished} jobs finished, {report.rounds} rounds")
    session.print(f"utilisation  {', '.join(f'{name} {part:.0%}' for name, part in report.utilisation.items()) or '-'}")
    session.print(f"evictions    {report.evictions}")
    for name, why in report.unfinished[:SHOWN]:
        session.print(f"unfinished   {name}: {why}")
    if len(report.unfinished) > SHOWN:
        session.print(f"unfinished   … and {len(report.unfinished) - SHOWN} more")


def _body(report: Report, args: argparse.Namespace) -> dict[str, Any]:
    def waits(entries: dict[str, Waits]) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "jobs": entry.jobs,
                "meanSeconds": entry.mean,
                "medianSeconds": entry.median,
                "p95Seconds": entry.p95,
                "longestSeconds": entry.longest,
            }
            for name, entry in entries.items()
        ]

    return {
        "policy": args.policy,
        "makespanSeconds": report.makespan,
        "finished": report.finished,
        "rounds": report.rounds,
        "evictions": report.evictions,
        "utilisation": report.utilisation,
        "queues": waits(report.by_queue),
        "classes": waits(report.by_class),
        "unfinished": [{"job": name, "why": why} for name, why in report.unfinished],
    }


# One round


def _one_round(session: Session, args: argparse.Namespace, fmt: output.Format) -> int:
    from paddlecloud.cli.render.scheduling import fetch, waits_for_a_node
    from paddlecloud.local.scheduler.decision.decide import decide
    from paddlecloud.local.scheduler.decision.scores import POLICIES as policies
    from paddlecloud.local.scheduler.state.snapshot import pod_view
    from paddlecloud.local.scheduler.state.units import units_of

    with attempting("simulate"):
        cluster = fetch(session)
    snapshot = cluster.snapshot()
    waiting = [pod_view(obj) for obj in cluster.pods if waits_for_a_node(obj)]
    result = decide(snapshot, units_of(waiting, snapshot.gangs), policy=policies[args.policy])
    rows: list[dict[str, str]] = [
        {"pod": str(pod.key), "outcome": "placed", "on": node, "why": ""} for pod, node in result.placements
    ]
    rows += [
        {"pod": str(e.pod.key), "outcome": e.reason.lower(), "on": e.node, "why": f"for {e.preemptor}"}
        for e in result.evictions
    ]
    rows += [
        {"pod": str(pod.key), "outcome": "waits", "on": "", "why": refused.why.message}
        for refused in result.refused
        for unit in refused.units
        for pod in unit.pods
    ]
    if fmt.name:
        output.print_report(session, "SimulatedRound", {"policy": args.policy, "items": rows})
    elif not rows:
        session.note("no pod waits for a node")
    else:
        session.print(_rows(rows))
    return 0


def _rows(rows: Sequence[dict[str, str]]) -> str:
    names = ("pod", "outcome", "on", "why")
    cells = [[row[name] or None for name in names] for row in rows]
    return table.render([name.upper() for name in names], cells, headers=True)
