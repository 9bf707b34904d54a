"""`pdc metrics`: the scalars that a job writes with VisualDL's LogWriter, as a table with their curves, or as JSON.

  pdc metrics JOB                       while it trains, and after it
  pdc metrics JOB --tag 'train/*'       these alone
  pdc metrics --dir ./log               of a folder here, without a job

VisualDL is not needed. Records of a running job are read in its pod; of another job, in a pod of its image that is made
for it and deleted again, from the volumes of the job. Without --logdir they are looked for as by pdc visualdl.

Exit codes: 0 there are scalars; 3 there is no job, or no record in those folders; 5 the records cannot be read.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from fnmatch import fnmatchcase
from typing import Any

from paddlecloud.cli.failures import NOT_FOUND, OK, CliError, InputError, UsageError, attempting
from paddlecloud.cli.objects import targets
from paddlecloud.cli.parsing import Parsers, number
from paddlecloud.cli.render import curves, output, table
from paddlecloud.cli.session import Session
from paddlecloud.kube.nearest import question
from paddlecloud.kube.resource import PADDLEJOBS
from paddlecloud.sdk.core import AsyncClient
from paddlecloud.sdk.metrics import Metrics, MetricsError, read, read_here
from paddlecloud.visualdl.records import Curve

HEADERS = ("Run", "Tag", "Step", "Last", "Least", "Greatest", "Curve")


def add_commands(parsers: Parsers) -> None:
    usage = "pdc metrics JOB [flags], or pdc metrics --dir FOLDER"
    parser = parsers.add_parser("metrics", description=__doc__, usage=usage)
    parser.add_argument("job", nargs="?", metavar="JOB")
    parser.add_argument(
        "--logdir", action="extend", nargs="+", default=[], metavar="FOLDER", help="with records, as the program has it"
    )
    parser.add_argument("--dir", action="extend", nargs="+", default=[], metavar="FOLDER", help="of this machine")
    parser.add_argument("--tag", action="append", default=[], metavar="PATTERN", help="only these tags: loss, train/*")
    parser.add_argument("--rank", type=number(0), metavar="N", help="of a running job: in the pod of this worker")
    parser.add_argument("--no-headers", action="store_true")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    if args.job and args.dir:
        raise UsageError(
            "--dir reads folders of this machine, without a job", next="one of the two; of a job, --logdir FOLDER"
        )
    if not (args.job or args.dir):
        raise UsageError("name a job, or a folder with --dir", next="pdc ps, or pdc metrics --help")
    if args.dir and (args.logdir or args.rank is not None):
        raise UsageError("--logdir and --rank are of a job", next="pdc metrics JOB, or pdc metrics --dir FOLDER")
    found = read_here(args.dir) if args.dir else _of_job(session, args)
    chosen = [one for one in found if not args.tag or any(fnmatchcase(one.tag, pattern) for pattern in args.tag)]
    if not chosen:
        raise _nothing(session, args, found)
    for problem in found.problems:
        session.warn(problem)
    if fmt.name:
        output.print_report(session, "MetricsReport", {"items": list(map(_record, chosen)), "problems": found.problems})
    else:
        session.print(table.render(HEADERS, map(_row, chosen), headers=not args.no_headers))
    return OK


def _of_job(session: Session, args: argparse.Namespace) -> Metrics:
    async def ask(name: str) -> Metrics:
        async with AsyncClient(session.api.config, namespace=session.namespace) as client:
            job = await client.api.get(PADDLEJOBS, name, session.namespace)
            return await read(client, job, args.logdir, rank=args.rank)

    hints = {"NotFound": "pdc ps"} if args.rank is not None else None
    with attempting(f"read the metrics of {args.job}", hints=hints):
        try:
            return asyncio.run(ask(targets.name_in(session.api, args.job, PADDLEJOBS)))
        except MetricsError as error:
            raise InputError(f"no metrics of {args.job}", why=str(error), next="pdc metrics --help") from error


def _nothing(session: Session, args: argparse.Namespace, found: Metrics) -> CliError:
    if found:
        for problem in found.problems:
            session.warn(problem)
        tags = sorted({one.tag for one in found})
        why = "; ".join(filter(None, [f"there are {', '.join(tags[:10])}", question(args.tag[0], tags)]))
        subject = f"--dir {args.dir[0]}" if args.dir else args.job
        what = f"no tag is like {' or '.join(args.tag)}"
        return CliError(what, why=why, next=f"pdc metrics {subject}", exit_code=NOT_FOUND)
    where = f"in {', '.join(args.dir)}" if args.dir else f"of {args.job}"
    return CliError(
        f"there are no scalars {where}",
        why="no record of VisualDL's LogWriter was found" if not found.problems else "; ".join(found.problems[:3]),
        next="--logdir with the folder that the program gives to LogWriter" if args.job else "pdc metrics --help",
        exit_code=NOT_FOUND,
    )


def _row(one: Curve) -> list[object]:
    least, greatest = curves.least_and_greatest(one.values)
    figures = [curves.short(value) for value in (one.values[-1], least, greatest)]
    return [one.run, one.tag, one.steps[-1], *figures, curves.sparkline(one.values)]


def _record(one: Curve) -> dict[str, Any]:
    least, greatest = curves.least_and_greatest(one.values)
    summary = {"run": one.run, "tag": one.tag, "step": one.steps[-1], "last": _plain(one.values[-1])}
    bounds = {"least": _plain(least), "greatest": _plain(greatest)}
    points = {"steps": one.steps, "times": one.times, "values": [_plain(value) for value in one.values]}
    return {**summary, **bounds, **points}


def _plain(value: float) -> float | str:
    """JSON has no word for these; protocol buffers write them as these texts."""
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
