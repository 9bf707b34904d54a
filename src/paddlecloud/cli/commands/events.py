"""`pdc events`: what happened, oldest first, so that the newest is next to the prompt."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from paddlecloud.cli.failures import attempting
from paddlecloud.cli.objects import suggestions, targets
from paddlecloud.cli.objects.events import order, planned_ends
from paddlecloud.cli.parsing import Parsers, add_all_namespaces
from paddlecloud.cli.render import output
from paddlecloud.cli.render.events import COLUMNS, rows
from paddlecloud.cli.render.table import Printer
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import Expired, Forbidden, Gone, NotFound
from paddlecloud.kube.resource import EVENTS, Object


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("events")
    parser.add_argument("--for", dest="subject", metavar="KIND/NAME", help="only events about this object")
    parser.add_argument("--types", metavar="TYPES", help="only these types: Warning, Normal")
    parser.add_argument("-w", "--watch", action="store_true", help="go on printing events as they come")
    parser.add_argument("--no-headers", action="store_true", help="leave the header line out")
    add_all_namespaces(parser)
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", "wide", *output.OBJECTS))
    output.check(fmt)
    types = [kind.strip().title() for kind in (args.types or "").split(",") if kind.strip()]
    with attempting("list events"):
        selector = _selector(session, args.subject) if args.subject else None
        found = session.api.do(session.api.client.list(EVENTS, session.scope, field_selector=selector, limit=500))
        events = [event for event in sorted(found.items, key=order) if not types or event.get("type") in types]
        if args.subject:
            events = _of_the_present_one(session, args.subject, events)
        printer = Printer(headers=not args.no_headers)
        _show(session, printer, events, fmt)
        if args.watch:
            _follow(session, printer, fmt, selector=selector, types=types, version=found.resource_version)
        elif not events and args.subject:
            _check_exists(session, args.subject)
        if not (events or args.watch) and fmt.is_table:
            suggestions.check_namespace(session)
            session.note("No events found" if session.scope is None else f"No events found in {session.scope}.")
    return 0


def _selector(session: Session, subject: str) -> str:
    entry, name = targets.one(session.api, [subject], usage="--for KIND/NAME")
    return f"involvedObject.kind={entry.resource.kind},involvedObject.name={name}"


def _of_the_present_one(session: Session, subject: str, events: list[Object]) -> list[Object]:
    """Without those of a deleted object of that name; all of them where none has it now, or where it may not be read.

    Events that do not know the uid stay: kubelets write the name of a node for it.
    """
    entry, name = targets.one(session.api, [subject], usage="--for KIND/NAME")
    if entry.resource.namespaced and session.scope is None:
        return events
    try:
        present = session.api.do(
            session.api.client.get(entry.resource, name, session.namespace if entry.resource.namespaced else None)
        )
    except (NotFound, Forbidden):
        return events
    known = (None, "", name, present["metadata"].get("uid"))
    return [event for event in events if (event.get("involvedObject") or {}).get("uid") in known]


def _check_exists(session: Session, subject: str) -> None:
    """Events outlive their object, so only an object without events is looked for."""
    entry, name = targets.one(session.api, [subject], usage="--for KIND/NAME")
    namespace = session.namespace if entry.resource.namespaced else None
    session.api.do(session.api.client.get(entry.resource, name, namespace))


def _show(session: Session, printer: Printer, events: list[Object], fmt: output.Format) -> None:
    if not fmt.is_table:
        clean = [output.without_managed_fields(event) for event in events]
        output.print_objects(session, clean, fmt, single=False)
        return
    lines = rows(events, time.time(), planned_ends(session, events))
    columns: Sequence[str] = COLUMNS
    if session.args.all_namespaces:
        columns = ("Namespace", *COLUMNS)
        lines = [[event["metadata"].get("namespace"), *line] for event, line in zip(events, lines, strict=True)]
    if lines:
        sys.stdout.write(printer.render(columns, lines))
    sys.stdout.flush()


def _follow(
    session: Session, printer: Printer, fmt: output.Format, *, selector: str | None, types: list[str], version: str
) -> None:
    from paddlecloud.sdk.watching import rounds

    api = session.api
    for pause in rounds():
        time.sleep(pause)
        try:
            changes = api.client.watch(EVENTS, session.scope, resource_version=version, field_selector=selector)
            for change in api.each(changes):
                version = str(change.object["metadata"].get("resourceVersion") or version)
                if change.type in ("ADDED", "MODIFIED") and (not types or change.object.get("type") in types):
                    if fmt.name == "json":
                        session.print_data(output.to_json_line(output.without_managed_fields(change.object)))
                        sys.stdout.flush()
                    else:
                        _show(session, printer, [change.object], fmt)
        except (Expired, Gone):
            version = api.do(
                api.client.list(EVENTS, session.scope, field_selector=selector, limit=500)
            ).resource_version
