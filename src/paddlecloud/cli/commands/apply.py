"""`pdc apply`: make the server hold what the files say, by server-side apply.

The server merges and keeps who owns which field, so two tools that set different fields live in peace, a field removed
from the file is removed from the object, and a clash is an error that names the other owner instead of a silent
overwrite.
"""

from __future__ import annotations

import argparse
import sys

from paddlecloud.cli.failures import CONFLICT, OK, CliError, InputError, UsageError, render
from paddlecloud.cli.objects.manifests import ManifestDocument, load
from paddlecloud.cli.objects.next_run import is_resized, unused_change
from paddlecloud.cli.objects.resizing import restart_note, scale_note
from paddlecloud.cli.objects.serverside import Applied, Applier, add_flags
from paddlecloud.cli.parsing import Parsers, add_dry_run, add_files, duration
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.nearest import question
from paddlecloud.kube.resource import PADDLEJOBS, PADDLESERVICES


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("apply", description=__doc__)
    add_files(parser, required=True)
    add_flags(parser)
    add_dry_run(parser, help="change nothing")
    parser.add_argument("--wait", action="store_true", help="until jobs are finished and everything else is ready")
    parser.add_argument("--timeout", type=duration, metavar="TIME", help="give up waiting after this long")
    parser.add_argument("--logs", action="store_true", help="follow the logs of the job that was applied")
    parser.set_defaults(run=run, rank=None, all_ranks=True, timestamps=False)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    output.check(fmt)
    manifests = load(args.filename, recursive=args.recursive)
    if args.dry_run == "client":
        return _print_only(session, manifests, fmt)
    applier = Applier(session)
    dry_run = args.dry_run == "server"
    done: list[Applied] = []
    failures: list[CliError] = []
    for manifest in manifests:
        try:
            applied = applier.apply(manifest, dry_run=dry_run)
        except CliError as failure:
            if len(manifests) == 1:
                raise
            # The others are still applied, as kubectl does: most objects of a file do not depend on each other.
            print(render(failure, as_json=args.output == "json"), file=sys.stderr)
            failures.append(failure)
            continue
        done.append(applied)
        _warn_of_unknown_values(session, applied)
        if not fmt.name:
            session.print(f"{applied.place.display} {applied.action}{' (server dry run)' if dry_run else ''}")
    if fmt.name:
        objects = [output.without_managed_fields(applied.after) for applied in done]
        output.print_objects(session, objects, fmt, single=len(manifests) == 1)
    if failures:
        return failures[0].exit_code
    if dry_run:
        return OK
    unused = _note_unused_changes(session, done)
    if args.logs:
        return CONFLICT if unused else _follow(session, done)
    if args.wait:
        return _wait(session, [one for one in done if one not in unused]) or (CONFLICT if unused else OK)
    return OK


def _warn_of_unknown_values(session: Session, applied: Applied) -> None:
    """Fields that published YAML misspells are free text in the CRD: what is not known is read as the default."""
    if applied.place.resource.full_name != PADDLEJOBS.full_name:
        return
    from paddlecloud.api.paddlejob import decode, unknown_values

    for value in unknown_values(decode(applied.after)):
        advice = question(value.written, value.known) or f"write {', '.join(value.known)}"
        session.warn(f'{value.field} "{value.written}" is unknown and read as {value.read_as}; {advice}')


def _note_unused_changes(session: Session, done: list[Applied]) -> list[Applied]:
    """The jobs whose run is not of the spec that was applied: how it ends says nothing of the change."""
    unused = []
    for applied in done:
        before = applied.before
        is_job = applied.place.resource.full_name == PADDLEJOBS.full_name
        if is_job and before is not None and is_resized(before, applied.after) and (note := restart_note(before)):
            session.note(f"{applied.place.display}: {note}")
        if text := _kept_pin(applied):
            session.note(f"{applied.place.display}: {text}")
        if text := unused_change(applied):
            session.note(f"{applied.place.display}: {text}")
            unused.append(applied)
    return unused


def _kept_pin(applied: Applied) -> str:
    """A number that `scale` set stays when the file has none: another tool may have set it."""
    pinned = int((applied.after.get("spec") or {}).get("replicas") or 0)
    written = (applied.manifest.object.get("spec") or {}).get("replicas")
    if applied.place.resource.kind != PADDLESERVICES.kind or not pinned or written is not None:
        return ""
    return scale_note(applied.place.name, pinned)


def _print_only(session: Session, manifests: list[ManifestDocument], fmt: output.Format) -> int:
    """No server is asked: what is printed is what would be sent."""
    for manifest in manifests:
        if not manifest.object["metadata"].get("name"):
            raise InputError(f"{manifest.source}: {manifest.label} has only a generateName")
    if fmt.name:
        objects = [manifest.object for manifest in manifests]
        output.print_objects(session, objects, fmt, single=len(objects) == 1)
        return OK
    for manifest in manifests:
        session.print(f"{output.name_of(manifest.object)} would be applied (client dry run)")
    return OK


def _follow(session: Session, done: list[Applied]) -> int:
    """Until the job ends; its end is the exit code."""
    from paddlecloud.cli.objects.outcome import FINISHING
    from paddlecloud.cli.render.follow import Printer
    from paddlecloud.cli.render.log_lines import Writer
    from paddlecloud.sdk.logs import LogOptions

    jobs = [applied for applied in done if applied.after["kind"] in (*FINISHING, "Pod")]
    if len(jobs) != 1:
        raise UsageError(
            f"--logs follows one job, not {len(jobs)}", why="all of it was applied", next="pdc logs -f JOB"
        )
    writer = Writer(session, as_json=session.args.output == "json")
    return Printer(session, jobs[0].place, writer, LogOptions()).run(jobs[0].after)


def _wait(session: Session, done: list[Applied]) -> int:
    """Waits for each in turn; the first that ends badly decides the exit code."""
    import time

    from paddlecloud.cli.commands.wait import settled_goal, wait_for

    sys.stdout.flush()
    timeout = session.args.timeout
    deadline = None if timeout is None else time.monotonic() + timeout
    code = OK
    for applied in done:
        left = None if deadline is None else max(0.001, deadline - time.monotonic())
        before = (applied.before or {"metadata": {}})["metadata"].get("generation")
        goal = settled_goal(changed=before != applied.after["metadata"].get("generation"))
        result = wait_for(session, applied.place, goal, timeout=left)
        if result.state == "ready":
            session.note(f"{applied.place.display} ready")
            if result.message:
                session.warn(f"{applied.place.display}: {result.message}")
        else:
            message = f": {result.message}" if result.message else ""
            session.note(f"{applied.place.display} {result.state}{message}")
        code = code or result.exit_code
    return code
