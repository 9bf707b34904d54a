"""`pdc cp`: files and folders to or from a container. The container must have `tar`.

  pdc cp POD:/path ./here        from a pod, or from the first running worker of a JOB
  pdc cp ./here NAMESPACE/POD:/path

If the destination is a directory, the copy goes into it; otherwise it gets that name.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from paddlecloud.cli.failures import ERROR, OK, CliError, UsageError, attempting
from paddlecloud.cli.objects.blocking_program import BlockingProgram
from paddlecloud.cli.objects.members import Member
from paddlecloud.cli.objects.pods import one_pod
from paddlecloud.cli.parsing import Parsers, number
from paddlecloud.cli.render import output, progress
from paddlecloud.cli.session import Session
from paddlecloud.sdk import copying
from paddlecloud.sdk.portal import Portal
from paddlecloud.sdk.remote import Remote

USAGE = "pdc cp SOURCE DESTINATION, one of them POD:PATH or NAMESPACE/POD:PATH"


class Side(NamedTuple):
    """A path here (`subject` is empty) or in a pod."""

    subject: str
    path: str
    namespace: str = ""


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("cp", description=__doc__, usage="pdc cp SOURCE DESTINATION [flags]")
    parser.add_argument("source", metavar="SOURCE")
    parser.add_argument("destination", metavar="DESTINATION")
    parser.add_argument("-c", "--container", metavar="NAME", help="container (default: the first)")
    parser.add_argument("--rank", type=number(0), metavar="N", help="of a job: this worker")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    source, destination = parse(args.source), parse(args.destination)
    if bool(source.subject) == bool(destination.subject):
        raise UsageError("one side of a copy is in a pod, the other here", why=USAGE, next="pdc cp --help")
    remote = source if source.subject else destination
    if remote.namespace:
        args.namespace = remote.namespace
    hints: dict[str, str] = {}
    with attempting(f"copy {args.source} to {args.destination}", hints=hints):
        member = one_pod(session, remote.subject, rank=args.rank)
        hints["BadRequest"] = f"pdc describe pod/{member.name}"
        moved = _copy(session, member, source, destination)
    if fmt.name:
        body = {"pod": member.name, "source": args.source, "destination": args.destination, "archiveBytes": moved}
        output.print_report(session, "CopyReport", body)
    return OK


def parse(text: str) -> Side:
    """`pod:path`; a path with a slash before its colon (`./a:b`) is a path."""
    subject, colon, path = text.partition(":")
    namespace, slash, name = subject.rpartition("/")
    if not colon or subject.startswith((".", "/")) or "/" in namespace:
        return Side("", text)
    if not name or not path:
        raise UsageError(f'"{text}" names no pod or no path', why=USAGE, next="pdc cp --help")
    return Side(name, path, namespace if slash else "")


def _missing_here(source: Side, destination: Side) -> str:
    """The next step where the side that lacks something is this machine."""
    if not source.subject and not Path(source.path).exists():
        return f"ls {Path(source.path).parent}"
    if not destination.subject and not Path(destination.path).parent.is_dir():
        return f"mkdir -p {Path(destination.path).parent}"
    return ""


def _copy(session: Session, member: Member, source: Side, destination: Side) -> int:
    quiet = bool(session.args.output)
    total = None if source.subject else copying.size(Path(source.path))
    meter = progress.Meter(f"copying {source.path}", total=total, quiet=quiet)
    remote = Remote(session.api.config)
    portal = Portal(remote.close)

    def start(command: Sequence[str]) -> BlockingProgram:
        namespace = str(member.pod["metadata"]["namespace"])
        container = member.container(session.args.container)
        return BlockingProgram(
            portal, portal.run(remote.exec(namespace, member.name, command, container=container, stdin=True))
        )

    try:
        if source.subject:
            copying.download(start, source.path, Path(destination.path), moved=meter.add, warn=session.warn)
        else:
            copying.upload(start, Path(source.path), destination.path, moved=meter.add)
    except copying.CopyError as error:
        raise CliError(
            "the copy is not complete",
            why=str(error),
            next=_missing_here(source, destination) or f"pdc exec {member.name} -- ls -l    (what is there)",
            exit_code=ERROR,
        ) from error
    finally:
        meter.end()
        portal.close()
    return meter.done
