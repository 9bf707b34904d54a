"""`pdc describe`: first why the object is as it is, then the object, then what happened to it."""

from __future__ import annotations

import argparse
import time

from paddlecloud.cli.failures import NOT_FOUND, CliError, attempting
from paddlecloud.cli.objects import targets
from paddlecloud.cli.objects.examination import examine
from paddlecloud.cli.objects.members import Member
from paddlecloud.cli.objects.why import Verdict
from paddlecloud.cli.parsing import Parsers, add_all_namespaces, add_selectors
from paddlecloud.cli.render import description, output
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import Object

USAGE = "pdc describe KIND NAME…, KIND/NAME… or JOB…"


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("describe")
    parser.add_argument("words", nargs="*", metavar="KIND [NAME…]|JOB")
    add_all_namespaces(parser)
    add_selectors(parser)
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    reports = []
    with attempting(f"describe {' '.join(args.words)}"):
        for obj in fetch(session, args):
            members, happened, verdict = examine(session, obj)
            if fmt.name:
                reports.append(_report(obj, members, happened, verdict))
                continue
            if reports:
                session.print()
            reports.append({})
            text = description.describe(obj, members=members, events=happened, verdict=verdict, now=time.time())
            head, _, rest = text.partition("\n")
            colour = {"failed": "red", "waiting": "yellow", "deleting": "yellow"}.get(verdict.state, "green")
            session.print(session.paint(head, colour))
            session.print(rest)
    if fmt.name:
        output.print_report(session, "DescribeReport", {"items": reports})
    return 0


def fetch(session: Session, args: argparse.Namespace) -> list[Object]:
    api = session.api
    found: list[Object] = []
    for target in targets.resolve(api, targets.with_jobs(api, args.words, session.namespace), usage=USAGE):
        namespace = session.scope if target.resource.namespaced else None
        if target.names:
            found += [api.do(api.client.get(target.resource, name, namespace)) for name in target.names]
        else:
            listing = api.client.list(
                target.resource, namespace, label_selector=args.selector, field_selector=args.field_selector
            )
            found += api.do(listing).items
    if not found:
        raise CliError(
            "nothing to describe", why="no object matches", next=f"pdc get {args.words[0]}", exit_code=NOT_FOUND
        )
    return found


def _report(obj: Object, members: list[Member], happened: list[Object], verdict: Verdict) -> Object:
    return {
        "object": output.without_managed_fields(obj),
        "why": verdict._asdict(),
        "pods": [{"name": one.name, "role": one.role, "rank": one.rank} for one in members],
        "events": [output.without_managed_fields(event) for event in happened],
    }
