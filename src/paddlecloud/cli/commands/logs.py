"""`pdc logs`: of a job, a pod or a service; several pods are merged by time and each line has its rank or its pod.

Without --rank or --all-ranks a job shows its rank 0; one that failed shows the pod that made it fail. A service shows
all of its pods, those of its canary too, and a workflow those of all its steps. Ctrl-C detaches and never ends the job.
With -f the exit code is the job's: 0 completed, 100 failed, 103 deleted.
"""

from __future__ import annotations

import argparse

from paddlecloud.cli.failures import NOT_FOUND, OK, CliError, attempting
from paddlecloud.cli.objects import members, outcome
from paddlecloud.cli.objects.members import Member
from paddlecloud.cli.objects.placing import ObjectRef
from paddlecloud.cli.objects.pods import find
from paddlecloud.cli.parsing import Parsers, duration, number
from paddlecloud.cli.render import output
from paddlecloud.cli.render.log_lines import Writer
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.logs import LogOptions, merged

SERVICE = "PaddleService"
WITHOUT_RANKS = (SERVICE, "Workflow")
"""Kinds of which every pod counts: one answers as well as another, or each does its own step."""
SHOWN = 4
"""Pods that are named; the others are counted."""
ASLEEP = "it sleeps: without requests it is scaled to zero, and the next request starts a pod"


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("logs", description=__doc__)
    parser.add_argument("subject", metavar="JOB|POD|SERVICE|WORKFLOW|KIND/NAME")
    parser.add_argument("-f", "--follow", action="store_true", help="go on printing until the job or pod ends")
    parser.add_argument(
        "--tail", type=number(0), metavar="N", help="only the last N lines of each rank, over all its runs"
    )
    parser.add_argument("--since", type=duration, metavar="TIME", help="only lines younger than 5m, 1h …")
    parser.add_argument("-p", "--previous", action="store_true", help="of the container before its last restart")
    parser.add_argument("--rank", metavar="LIST", help="ranks of the workers: 0,3-5")
    parser.add_argument("--all-ranks", action="store_true", help="every pod of the job, servers included")
    parser.add_argument("--timestamps", action="store_true", help="begin each line with its time")
    parser.add_argument("-c", "--container", metavar="NAME", help="container (default: the first)")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", "json"))
    options = LogOptions(tail=args.tail, since=args.since, previous=args.previous, container=args.container)
    if args.rank is not None:
        members.parse_ranks(args.rank)
    hints: dict[str, str] = {}
    with attempting(f"read the logs of {args.subject}", hints=hints):
        place, owner = find(session, args.subject)
        hints["BadRequest"] = f"pdc describe {place.display}"  # a container that waits, or that there is not
        if owner.get("kind") in WITHOUT_RANKS and args.rank is None:
            args.all_ranks = True
        writer = Writer(session, as_json=fmt.name == "json", options=options)
        ended = outcome.finished(owner) if args.follow else None
        if args.follow and (ended is None or members.members_of(session, owner)):
            from paddlecloud.cli.render.follow import Printer

            return Printer(session, place, writer, options).run(owner)
        chosen = choose(session, owner)
        if not chosen:
            raise _no_pods(session, place, owner)
        chosen = _restarted(args, place, chosen) if args.previous else _started(session, chosen)
        writer.introduce(chosen)
        for line in session.api.each(merged(session.api.client, chosen, options)):
            writer.write(line)
        writer.close()
    return ended.exit_code if ended else OK


def choose(session: Session, owner: Object) -> list[Member]:
    """The pods whose logs are wanted, with those that had the same rank before them where their logs were kept."""
    args = session.args
    look_up = members.members_of if args.previous else members.lives_of
    found = look_up(session, owner)
    asked = args.rank is not None or args.all_ranks
    failed = [] if asked else [one for one in found if one.name == outcome.failed_pod(owner)]
    chosen = failed or members.choose(found, ranks=args.rank, everything=args.all_ranks)
    if found and not chosen:
        ranks = ", ".join(dict.fromkeys(str(one.rank) for one in found if one.role in ("worker", "")))
        raise CliError(
            f"no pod has rank {args.rank}", why=f"there are {ranks or 'none'}", next="--all-ranks", exit_code=NOT_FOUND
        )
    there = [one for one in found if not one.kept_in] or found  # without those that were scaled away
    if args.rank is None and len({one.tag for one in chosen}) < len({one.tag for one in there}):
        pods = len({one.name for one in there})
        which = ", which failed," if failed else ""
        session.note(f"showing {chosen[0].tag}{which} of {pods} pods; --all-ranks shows every one")
    return chosen


def _started(session: Session, chosen: list[Member]) -> list[Member]:
    """Without those that have no log yet, which would be the end of the command; all of them where none has one."""
    started = [one for one in chosen if one.kept_in or one.started(session.args.container)]
    if not started:
        return chosen
    waiting = [f"pod/{one.name}" for one in chosen if one not in started]
    if waiting:
        more = f" and {len(waiting) - SHOWN} more" if len(waiting) > SHOWN else ""
        session.note(f"{', '.join(waiting[:SHOWN])}{more} {'has' if len(waiting) == 1 else 'have'} not started")
    return started


def _restarted(args: argparse.Namespace, place: ObjectRef, chosen: list[Member]) -> list[Member]:
    """Those that have a log of the run before; a job that restarts as a whole has new pods instead."""
    restarted = [one for one in chosen if one.restarted(args.container)]
    if restarted:
        return restarted
    job = place.resource.kind == "PaddleJob"
    raise CliError(
        f"{place.display} has no previous run",
        why="no container was restarted in its pod" + ("; a restart of the whole job makes new pods" if job else ""),
        next=f"pdc logs {args.subject}" + ("    (shows every run of a rank, as far as logs were kept)" if job else ""),
        exit_code=NOT_FOUND,
    )


def _no_pods(session: Session, place: ObjectRef, owner: Object) -> CliError:
    from paddlecloud.cli.objects.examination import examine

    _, _, verdict = examine(session, owner)
    asleep = owner.get("kind") == SERVICE and verdict.state == "ok"
    reason = ASLEEP if asleep else verdict.text
    step = f"pdc describe {place.display}"
    return CliError(f"{place.display} has no pods", why=reason, next=step, exit_code=NOT_FOUND)
