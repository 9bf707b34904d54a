"""`pdc api-resources`: the kinds the server offers."""

from __future__ import annotations

import argparse
import sys

from paddlecloud.cli.failures import NOT_FOUND, CliError, attempting
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.render import output
from paddlecloud.cli.render.table import render
from paddlecloud.cli.session import Session
from paddlecloud.kube.nearest import question


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("api-resources")
    parser.add_argument("--namespaced", choices=("true", "false"), help="only kinds that are, or are not, namespaced")
    parser.add_argument("--api-group", metavar="GROUP", help="only kinds of this group")
    parser.add_argument("--no-headers", action="store_true", help="leave the header line out")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", "wide", "name", *output.STRUCTURED))
    with attempting("ask the server for its kinds"):
        entries = [
            entry
            for entry in session.api.rediscover()
            if args.namespaced in (None, str(entry.resource.namespaced).lower())
            and args.api_group in (None, entry.resource.group)
        ]
    groups = {entry.resource.group for entry in session.api.discovery()}
    if args.api_group is not None and args.api_group not in groups:
        meant = question(args.api_group, groups)
        raise CliError(
            f"the server has no API group {args.api_group}", why=meant, next="pdc api-resources", exit_code=NOT_FOUND
        )
    if fmt.name == "name":
        for entry in entries:
            group = f".{entry.resource.group}" if entry.resource.group else ""
            session.print(entry.resource.plural + group)
    elif fmt.is_table:
        columns = ["Name", "Shortnames", "APIVersion", "Namespaced", "Kind"]
        rows = [
            [e.resource.plural, ",".join(e.short_names), e.resource.api_version, e.resource.namespaced, e.resource.kind]
            for e in entries
        ]
        if fmt.name == "wide":
            columns += ["Verbs", "Categories"]
            for row, entry in zip(rows, entries, strict=True):
                row += [",".join(entry.verbs), ",".join(entry.categories)]
        sys.stdout.write(render(columns, rows, headers=not args.no_headers))
    else:
        items = [
            {
                "name": entry.resource.plural,
                "apiVersion": entry.resource.api_version,
                "kind": entry.resource.kind,
                "namespaced": entry.resource.namespaced,
                "shortNames": list(entry.short_names),
                "verbs": list(entry.verbs),
                "categories": list(entry.categories),
            }
            for entry in entries
        ]
        output.print_report(session, "ApiResources", {"items": items})
    return 0
