"""`pdc diff`: what apply would change, as a unified diff of live object and dry run.

Exit codes: 0 nothing would change, 1 something would, 2 and above an error (an unspecific error is 2 here, so that 1
has one meaning).
"""

from __future__ import annotations

import argparse
from typing import Any

from paddlecloud.cli.failures import ERROR, OK, USAGE, CliError
from paddlecloud.cli.objects.manifests import load
from paddlecloud.cli.objects.serverside import Applied, Applier, add_flags, comparable
from paddlecloud.cli.parsing import Parsers, add_files
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import Object

DIFFERENT = 1
COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("diff", description=__doc__)
    add_files(parser, required=True)
    add_flags(parser)
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    applier = Applier(session)
    items: list[dict[str, Any]] = []
    try:
        for manifest in load(args.filename, recursive=args.recursive):
            applied = applier.apply(manifest, dry_run=True)
            lines = compare(applied)
            if lines and not fmt.name:
                _print(session, lines)
            items.append({"object": str(applied.place), "different": bool(lines), "diff": "\n".join(lines)})
    except CliError as failure:
        if failure.exit_code == ERROR:
            failure.exit_code = USAGE
        raise
    if fmt.name:
        output.print_report(session, "DiffReport", {"items": items})
    return DIFFERENT if any(item["different"] for item in items) else OK


def compare(applied: Applied) -> list[str]:
    """The lines of the diff; none when apply would change nothing."""
    import difflib

    from paddlecloud.kube.yamlio import dump

    before, after = _masked(applied.before, applied.after)
    if before == after:
        return []
    old, new = (dump(side).splitlines() if side else [] for side in (before, after))
    place = applied.place
    return list(difflib.unified_diff(old, new, fromfile=f"live {place}", tofile=f"file {place}", lineterm=""))


def _masked(before: Object | None, after: Object) -> tuple[Object | None, Object]:
    """Both sides as they are shown. That a value of a Secret changes may be seen, the value may not."""
    live, new = comparable(before) if before else None, comparable(after)
    if new.get("kind") != "Secret":
        return live, new
    for field in ("data", "stringData"):
        old_values, new_values = (live or {}).get(field) or {}, new.get(field) or {}
        if new_values:
            changed = {key for key, value in new_values.items() if old_values.get(key, value) != value}
            new = {**new, field: {key: "*** (after)" if key in changed else "***" for key in new_values}}
            if live and old_values:
                live = {**live, field: {key: "*** (before)" if key in changed else "***" for key in old_values}}
    return live, new


def _print(session: Session, lines: list[str]) -> None:
    for line in lines:
        colour = COLOURS.get(line[:1])
        session.print(session.paint(line, colour) if colour else line)
