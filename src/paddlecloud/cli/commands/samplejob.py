"""`pdc samplejob`: do something to the data of a SampleSet, without YAML, and watch it.

  pdc samplejob sync SET [--source URI] [--destination DIR] [--secret NAME] [--update …]
  pdc samplejob warmup SET [PATH…] [--strategy sampler --batch-size 32 --shuffle …]
  pdc samplejob clear SET [PATH…]          empty the caches; the data stays
  pdc samplejob rmr SET PATH…              remove data from the set

The command ends when the job does, with 0 or 100. Ctrl-C leaves the job alone: `pdc delete samplejob/NAME` stops it.
With --schedule nothing runs now: the job makes one each time it is due.
"""

from __future__ import annotations

import argparse
from typing import Any

from paddlecloud.api.samplejob import decode, validate
from paddlecloud.cli.failures import INTERRUPTED, JOB_FAILED, TIMEOUT, CliError, UsageError, attempting
from paddlecloud.cli.objects import targets
from paddlecloud.cli.objects.placing import ObjectRef
from paddlecloud.cli.objects.waiting import DeadlineError, until
from paddlecloud.cli.parsing import Parsers, duration, number
from paddlecloud.cli.render import output
from paddlecloud.cli.render.transfer_bar import TransferBar
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import SAMPLEJOBS, SAMPLESETS, Object

TYPES = ("sync", "warmup", "clear", "rmr")
KEPT_SECONDS = 24 * 3600
"""How long a finished job that was given no name stays to be looked at."""

FLAGS: dict[str, dict[str, tuple[str, Any]]] = {
    "sync": {
        "source": ("source", str),
        "destination": ("destination", str),
        "threads": ("threads", number(1)),
        "bwlimit": ("bwlimit", number(0)),
        "include": ("include", str),
        "exclude": ("exclude", str),
        "start": ("start", str),
        "end": ("end", str),
        "update": ("update", bool),
        "force-update": ("force-update", bool),
        "delete-dst": ("delete-dst", bool),
        "dry": ("dry", bool),
        "no-https": ("no-https", bool),
    },
    "warmup": {
        "strategy": ("strategyName", str),
        "file": ("file", str),
        "threads": ("threads", number(1)),
        "batch-size": ("batchSize", number(1)),
        "shuffle": ("shuffle", bool),
        "epochs": ("epochs", number(1)),
        "ranks-per-node": ("ranksPerNode", number(1)),
        "seed": ("seed", number(0)),
    },
    "clear": {},
    "rmr": {},
}
"""Which flags each type takes, and what they are called in its options."""

HELP = {
    "source": "sync: where to copy from (default: the set's own source)",
    "destination": "sync: directory inside the set",
    "threads": "sync, warmup: transfers at the same time",
    "bwlimit": "sync: Mbit/s at most",
    "include": "sync: copy keys that match although excluded",
    "exclude": "sync: leave out keys that match",
    "start": "sync: first key",
    "end": "sync: last key",
    "update": "sync: copy again what is newer at the source",
    "force-update": "sync: copy everything again",
    "delete-dst": "sync: delete in the set what the source does not have",
    "dry": "sync: only say what would be copied",
    "no-https": "sync: the object store has plain http, such as a local MinIO",
    "strategy": "warmup: sequence, random or sampler",
    "file": "warmup: file inside the set that lists what to warm up",
    "batch-size": "warmup: samples per batch and rank",
    "shuffle": "warmup: the sampler shuffles",
    "epochs": "warmup: epochs to plan for",
    "ranks-per-node": "warmup: training processes on each node",
    "seed": "warmup: makes random repeatable; sampler: the first epoch",
}


def add_commands(parsers: Parsers) -> None:
    usage = "pdc samplejob sync|warmup|clear|rmr SET [PATH…] [flags]"
    parser = parsers.add_parser("samplejob", description=__doc__, usage=usage)
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("set", metavar="SET", help="name of the SampleSet")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="warmup, clear, rmr: what of it")
    known: dict[str, Any] = {flag: kind for flags in FLAGS.values() for flag, (_, kind) in flags.items()}
    for flag, kind in known.items():
        if kind is bool:
            parser.add_argument(f"--{flag}", action="store_true", default=None, help=HELP[flag])
        else:
            parser.add_argument(f"--{flag}", type=kind, help=HELP[flag])
    parser.add_argument(
        "--secret", help="sync: Secret with the keys of the source (default: the set's own; with --source: none)"
    )
    parser.add_argument("--name", help="name of the job (default: made up, and deleted a day after its end)")
    parser.add_argument("--schedule", metavar="CRON", help='make a job each time it is due, as "30 2 * * *"')
    parser.add_argument("--terminate", action="store_true", help="first end what the cache servers are doing")
    parser.add_argument("-d", "--detach", "--no-wait", dest="no_wait", action="store_true", help="return at once")
    parser.add_argument("--timeout", type=duration, metavar="TIME", help="how long to wait (default: for ever)")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    with attempting(f"{args.type} SampleSet {args.set}"):
        args.set = targets.name_in(session.api, args.set, SAMPLESETS)
    body = build(args, session.namespace)
    with attempting(f"{args.type} SampleSet {args.set}"):
        # The set may be made later, and a job would wait for it: from the command line it is rather misspelt.
        session.api.do(session.api.client.get(SAMPLESETS, args.set, session.namespace))
    if args.type == "rmr":
        session.confirm(f"Remove {', '.join(args.paths)} from SampleSet {args.set}?")
    with attempting(f"{args.type} SampleSet {args.set}"):
        made = session.api.do(session.api.client.create(SAMPLEJOBS, body))
    place = ObjectRef(SAMPLEJOBS, made["metadata"]["name"], session.namespace)
    if not fmt.name:
        session.note(f"{place.display} created")
    waits = not args.no_wait and not args.schedule
    try:
        ended = _follow(session, place, args) if waits else made
    except KeyboardInterrupt:
        short = f"samplejob/{place.name}"
        session.note(f"no longer waiting; it goes on: pdc describe {short}. To stop it: pdc delete {short}")
        return INTERRUPTED
    if fmt.name:
        output.print_objects(session, [output.without_managed_fields(ended)], fmt, single=True)
    elif waits:
        _report_end(session, place, ended)
    failed = waits and ended["status"]["phase"] == "Failed"
    return JOB_FAILED if failed else 0


def build(args: argparse.Namespace, namespace: str) -> Object:
    """The SampleJob that the command line means."""
    mine = FLAGS[args.type]
    given = {flag: getattr(args, flag.replace("-", "_")) for flags in FLAGS.values() for flag in flags}
    strangers = sorted(flag for flag, value in given.items() if value is not None and flag not in mine)
    if strangers:
        raise UsageError(f"{args.type} takes no --{strangers[0]}", next="pdc samplejob --help")
    if args.type == "sync" and args.paths:
        raise UsageError("sync takes no paths", why="it has a source", next=f"--source {args.paths[0]}")
    if args.type == "rmr" and not args.paths:
        raise UsageError("rmr needs at least one path", next=f"pdc samplejob rmr {args.set} PATH")
    options: Object = {name: given[flag] for flag, (name, _) in mine.items() if given[flag] is not None}
    if args.paths:
        options["paths"] = args.paths
    spec: Object = {"type": args.type, "sampleSetRef": {"name": args.set}}
    if options:
        spec[f"{args.type}Options"] = options
    if args.type == "sync" and (args.secret or args.source):
        spec["secretRef"] = {"name": args.secret or "none"}
    if args.terminate:
        spec["terminate"] = True
    if args.schedule is not None:
        spec["schedule"] = _schedule(args.schedule)
    elif not args.name:
        spec["ttlSecondsAfterFinished"] = KEPT_SECONDS
    called = {"name": args.name} if args.name else {"generateName": f"{args.set}-{args.type}-"}
    body: Object = {
        "apiVersion": SAMPLEJOBS.api_version,
        "kind": SAMPLEJOBS.kind,
        "metadata": {**called, "namespace": namespace},
        "spec": spec,
    }
    if problems := validate(decode(body)):
        raise UsageError(str(problems[0]), why="nothing was created", next="pdc samplejob --help")
    return body


def _schedule(text: str) -> str:
    from paddlecloud.api import cron

    try:
        cron.parse(text)
    except cron.BadSchedule as error:
        raise UsageError(
            "--schedule is no cron schedule", why=str(error), next='--schedule "30 2 * * *", every day at 2:30 UTC'
        ) from None
    return text


def _follow(session: Session, place: ObjectRef, args: argparse.Namespace) -> Object:
    """Show how it goes until it has ended."""
    with TransferBar(f"{args.type} {args.set}", quiet=bool(args.output)) as bar:

        def look(job: Object | None) -> Object | None:
            if job is None:
                raise CliError(f"{place.display} was deleted before it had ended", exit_code=JOB_FAILED)
            status = job.get("status") or {}
            bar.show(status)
            return job if status.get("phase") in ("Succeeded", "Failed") else None

        try:
            return until(session.api, place, look, timeout=args.timeout)
        except DeadlineError as late:
            status = (late.last or {}).get("status") or {}
            raise CliError(
                f"{place.display} has not ended within {args.timeout:g} s",
                why=f"it is {status.get('phase') or 'new'}: {status.get('message') or 'no word yet'}",
                next=f"pdc describe {place.display}",
                exit_code=TIMEOUT,
            ) from late


def _report_end(session: Session, place: ObjectRef, job: Object) -> None:
    status = job["status"]
    text = status.get("message") or ""
    if status["phase"] == "Failed":
        raise CliError(f"{place.display} failed", why=text, next=f"pdc describe {place.display}", exit_code=JOB_FAILED)
    session.print(f"{place.display} succeeded{f': {text}' if text else ''}")
