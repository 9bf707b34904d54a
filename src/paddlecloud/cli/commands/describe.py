"""`pdc describe`: first why the object is as it is, then the object, then what happened to it."""

from __future__ import annotations

import argparse
import re
import time

from paddlecloud.cli.commands import events
from paddlecloud.cli.failures import NOT_FOUND, CliError, attempting
from paddlecloud.cli.objects import targets
from paddlecloud.cli.objects.members import Member, members_of
from paddlecloud.cli.objects.why import Verdict, why
from paddlecloud.cli.parsing import Parsers, add_all_namespaces, add_selectors
from paddlecloud.cli.render import description, output
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import Forbidden, NotFound
from paddlecloud.kube.resource import SAMPLESETS, Object

NO_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')
"""As schedulers and kubelets write it."""
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


def examine(session: Session, obj: Object, *, language: str = "en") -> tuple[list[Member], list[Object], Verdict]:
    """Everything a verdict rests on. Who may not list pods or events still gets what the object itself tells."""
    try:
        members = members_of(session, obj)
    except Forbidden:
        members = []
    try:
        happened = events.about(session, obj)
        if obj.get("kind") != "Pod":
            unwell = [one.pod for one in members if why(one.pod, now=time.time()).state != "ok"]
            for pod in unwell[:3]:  # three tell as much as three hundred
                happened += events.about(session, pod)
            happened.sort(key=events.order)
    except Forbidden:
        happened = []
    pods = [one.pod for one in members]
    verdict = why(obj, pods=pods, events=happened, now=time.time(), language=language)
    return members, happened, _with_cause_of_claim(session, obj, verdict, language=language)


def _with_cause_of_claim(session: Session, obj: Object, verdict: Verdict, *, language: str) -> Verdict:
    """The claim of a SampleSet is missing as long as something is wrong with the set: then that is the reason."""
    missing = NO_CLAIM.search(verdict.text)
    if missing is None:
        return verdict
    try:
        found = session.api.do(session.api.client.get(SAMPLESETS, missing[1], obj["metadata"].get("namespace")))
    except (NotFound, Forbidden):
        return verdict  # another claim, or a set that may not be read
    cause = why(found, now=time.time(), language=language)
    return verdict._replace(text=f"{verdict.text}; sampleset/{missing[1]}: {cause.text}")


def _report(obj: Object, members: list[Member], happened: list[Object], verdict: Verdict) -> Object:
    return {
        "object": output.without_managed_fields(obj),
        "why": verdict._asdict(),
        "pods": [{"name": one.name, "role": one.role, "rank": one.rank} for one in members],
        "events": [output.without_managed_fields(event) for event in happened],
    }
