"""`pdc metrics`: the scalars that a job writes with VisualDL's LogWriter, as a table with their curves, or as JSON.

  pdc metrics JOB                       while it trains, and after it
  pdc metrics JOB --tag 'train/*'       these alone
  pdc metrics JOB OTHER… --tag loss     to compare: a curve of each under the other
  pdc metrics pvc/CLAIM                 of a claim, when the job that wrote them is gone
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
from paddlecloud.cli.objects.records import records_of
from paddlecloud.cli.parsing import Parsers, number
from paddlecloud.cli.render import curves, output, table
from paddlecloud.cli.session import Session
from paddlecloud.kube.nearest import question
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.core import AsyncClient
from paddlecloud.sdk.metrics import Metrics, MetricsError, read, read_here
from paddlecloud.visualdl.folders import is_claim
from paddlecloud.visualdl.records import Curve

HEADERS = ("Run", "Tag", "Step", "Last", "Least", "Greatest", "Curve")


def add_commands(parsers: Parsers) -> None:
    usage = "pdc metrics JOB|pvc/CLAIM… [flags], or pdc metrics --dir FOLDER"
    parser = parsers.add_parser("metrics", description=__doc__, usage=usage)
    parser.add_argument("jobs", nargs="*", metavar="JOB|pvc/CLAIM")
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
    if args.jobs and args.dir:
        raise UsageError(
            "--dir reads folders of this machine, without a job", next="one of the two; of a job, --logdir FOLDER"
        )
    if not (args.jobs or args.dir):
        raise UsageError("name a job, or a folder with --dir", next="pdc ps, or pdc metrics --help")
    if args.dir and (args.logdir or args.rank is not None):
        raise UsageError("--logdir and --rank are of a job", next="pdc metrics JOB, or pdc metrics --dir FOLDER")
    found = {"": read_here(args.dir)} if args.dir else _of_jobs(session, args)
    chosen = [
        (job, one)
        for job, curves in found.items()
        for one in curves
        if not args.tag or any(fnmatchcase(one.tag, pattern) for pattern in args.tag)
    ]
    problems = [problem for curves in found.values() for problem in curves.problems]
    if not chosen:
        raise _nothing(session, args, [one for curves in found.values() for one in curves], problems)
    for problem in problems:
        session.warn(problem)
    several = len(found) > 1
    if several:  # curves of one tag under each other
        chosen.sort(key=lambda each: each[1].tag)
    if fmt.name:
        items = [{**({"job": job} if job else {}), **_record(one)} for job, one in chosen]
        output.print_report(session, "MetricsReport", {"items": items, "problems": problems})
    else:
        rows = ([job, *_row(one)] if several else _row(one) for job, one in chosen)
        headers = ("Job", *HEADERS) if several else HEADERS
        session.print(table.render(headers, rows, headers=not args.no_headers))
    return OK


def _of_jobs(session: Session, args: argparse.Namespace) -> dict[str, Metrics]:
    async def ask(job: Object) -> Metrics:
        async with AsyncClient(session.api.config, namespace=session.namespace) as client:
            return await read(client, job, args.logdir, rank=args.rank)

    hints = {"NotFound": "pdc ps"} if args.rank is not None else None
    found = {}
    with attempting(f"read the metrics of {' '.join(args.jobs)}", hints=hints):
        for job in records_of(session, args.jobs):
            name = f"pvc/{job['metadata']['name']}" if is_claim(job) else str(job["metadata"]["name"])
            try:
                found[name] = asyncio.run(ask(job))
            except MetricsError as error:
                raise InputError(f"no metrics of {name}", why=str(error), next="pdc metrics --help") from error
    return found


def _nothing(session: Session, args: argparse.Namespace, found: list[Curve], problems: list[str]) -> CliError:
    jobs = " ".join(args.jobs)
    if found:
        for problem in problems:
            session.warn(problem)
        tags = sorted({one.tag for one in found})
        why = "; ".join(filter(None, [f"there are {', '.join(tags[:10])}", question(args.tag[0], tags)]))
        subject = f"--dir {args.dir[0]}" if args.dir else jobs
        what = f"no tag is like {' or '.join(args.tag)}"
        return CliError(what, why=why, next=f"pdc metrics {subject}", exit_code=NOT_FOUND)
    where = f"in {', '.join(args.dir)}" if args.dir else f"of {jobs}"
    return CliError(
        f"there are no scalars {where}",
        why="no record of VisualDL's LogWriter was found" if not problems else "; ".join(problems[:3]),
        next="--logdir with the folder that the program gives to LogWriter" if args.jobs else "pdc metrics --help",
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
