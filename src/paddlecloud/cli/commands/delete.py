"""`pdc delete`: by file, by name, by label, or everything of a kind.

Deleting asks first: on a terminal with a prompt that lists what will go, elsewhere by refusing unless `-y` is given.
Exit codes: 0 all gone (or going, with --wait=false); 3 something named did not exist; 124 still there at the time-out.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Literal

from paddlecloud.cli.failures import INTERRUPTED, NOT_FOUND, OK, TIMEOUT, CliError, UsageError, attempting
from paddlecloud.cli.objects import outcome, targets
from paddlecloud.cli.objects.manifests import load
from paddlecloud.cli.objects.placing import ObjectRef, of_object, place
from paddlecloud.cli.parsing import Parsers, add_all_namespaces, add_dry_run, add_files, add_selectors, duration, number
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import SAMPLESETS, Object

USAGE = "pdc delete KIND NAME…, KIND/NAME…, KIND -l LABELS, KIND --all, or -f FILE"
SHOWN = 10
CASCADE: dict[str, Literal["Background", "Foreground", "Orphan"]] = {
    "background": "Background",
    "foreground": "Foreground",
    "orphan": "Orphan",
}


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("delete", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="KIND [NAME…]")
    add_files(parser, required=False)
    add_all_namespaces(parser)
    add_selectors(parser)
    parser.add_argument("--all", action="store_true", help="every object of the kind in the namespace")
    parser.add_argument("--ignore-not-found", action="store_true", help="what is gone already is no error")
    parser.add_argument("--grace-period", type=number(0), metavar="SECONDS", help="time a pod has to end by itself")
    parser.add_argument("--force", action="store_true", help="do not wait for processes to end (grace period 0)")
    parser.add_argument("--cascade", choices=tuple(CASCADE), default="background", help="what becomes of owned objects")
    parser.add_argument(
        "--wait", action=argparse.BooleanOptionalAction, default=True, help="until the objects are gone (default)"
    )
    parser.add_argument("--timeout", type=duration, metavar="TIME", help="give up waiting after this long")
    add_dry_run(parser, help="delete nothing")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", "name", *output.STRUCTURED))
    _check(args)
    with attempting("find what to delete"):
        doomed = _doomed(session, args)
    missing: list[ObjectRef] = []
    if args.dry_run == "none" and doomed:
        session.confirm(_question(doomed))
    gone: list[tuple[ObjectRef, Object]] = []
    for where in doomed:
        answer = _delete(session, where)
        if answer is None:
            missing.append(where)
            continue
        gone.append((where, answer))
        if fmt.name in ("", "name"):
            note = "" if args.dry_run == "none" else f" ({args.dry_run} dry run)"
            session.print(where.display if fmt.name else f"{where.display} deleted{note}")
    if fmt.name not in ("", "name"):
        items = [{"object": where.display, "namespace": where.namespace, "action": "deleted"} for where, _ in gone]
        output.print_report(session, "DeleteReport", {"dryRun": args.dry_run != "none", "items": items})
    if args.wait and args.dry_run == "none":
        try:
            _wait(session, gone)
        except KeyboardInterrupt:
            names = " ".join(f"{where.resource.kind.lower()}/{where.name}" for where, _ in gone[:SHOWN])
            session.note(f"no longer waiting; the deletion goes on. To wait again: pdc wait {names} --for=delete")
            return INTERRUPTED
    if args.dry_run == "none":
        _note_kept_data(session, gone)
    return _report_missing(args, missing)


def _check(args: argparse.Namespace) -> None:
    if args.filename and (args.words or args.selector or args.all):
        raise UsageError("-f and names cannot be combined", why=USAGE)
    if not args.filename:
        named = any(names for _, names in targets.parse(args.words, usage=USAGE))
        if not named and not (args.selector or args.field_selector or args.all):
            error = UsageError("say which objects to delete", why=USAGE, next=f"pdc delete {args.words[0]} NAME")
            error.missing = (args.words[0], ()) if len(args.words) == 1 else None
            raise error
        if named and (args.selector or args.all):
            raise UsageError("names cannot be combined with -l or --all", why=USAGE)
        if args.all_namespaces and named:
            raise UsageError("a name cannot be deleted across all namespaces", why=USAGE)
    if args.force and args.grace_period:
        raise UsageError("--force means a grace period of 0", next="leave one of the two out")


def _doomed(session: Session, args: argparse.Namespace) -> list[ObjectRef]:
    if args.filename:
        # Last applied, first deleted: what lives in a namespace goes before the namespace.
        return [place(session, manifest) for manifest in reversed(load(args.filename, recursive=args.recursive))]
    doomed = []
    for target in targets.resolve(session.api, args.words, usage=USAGE):
        resource = target.resource
        namespace = session.scope if resource.namespaced else None
        if target.names:
            doomed += [ObjectRef(resource, name, namespace) for name in target.names]
            continue
        listing = session.api.client.list(
            resource, namespace, label_selector=args.selector, field_selector=args.field_selector
        )
        doomed += [of_object(resource, obj) for obj in session.api.do(listing).items]
    if not doomed and not args.ignore_not_found:
        session.note("No resources found")
    return doomed


def _question(doomed: list[ObjectRef]) -> str:
    names = ", ".join(str(where) for where in doomed[:SHOWN])
    more = f" and {len(doomed) - SHOWN} more" if len(doomed) > SHOWN else ""
    return f"Delete {names}{more}?"


def _delete(session: Session, where: ObjectRef) -> Object | None:
    """The server's answer, a Status or the object while it lingers; None when it was not there."""
    args = session.args
    if args.dry_run == "client":
        return {}
    try:
        with attempting(f"delete {where}"):
            call = session.api.client.delete(
                where.resource,
                where.name,
                namespace=where.namespace,
                propagation=CASCADE[args.cascade],
                grace_period=0 if args.force else args.grace_period,
                dry_run=args.dry_run == "server",
            )
            return session.api.do(call)
    except CliError as failure:
        if isinstance(failure.__cause__, NotFound):
            return None
        raise


def _uid(answer: Object) -> str:
    """Of what was deleted; a Status names it in its details."""
    source = answer.get("details") if answer.get("kind") == "Status" else answer.get("metadata")
    return str((source or {}).get("uid") or "")


def _note_kept_data(session: Session, gone: list[tuple[ObjectRef, Object]]) -> None:
    """The data of a SampleSet outlives it. Where it is a folder of this machine there is a command to remove it.

    A set that was gone at once, which a Status answers, had no finalizer yet: nothing was made of it."""
    for where, answer in gone:
        if where.resource != SAMPLESETS or answer.get("kind") == "Status":
            continue
        if (answer.get("status") or {}).get("driver") == "local":
            command = f"pdc sampleset rm-data {where.name} -n {where.namespace}"
            session.note(f"the data of SampleSet {where.name} is kept: `{command}` removes it")


def _wait(session: Session, gone: list[tuple[ObjectRef, Object]]) -> None:
    from paddlecloud.cli.objects.waiting import DeadlineError, until

    sys.stdout.flush()
    timeout = session.args.timeout
    deadline = None if timeout is None else time.monotonic() + timeout
    for where, answer in gone:
        uid = _uid(answer)

        said = ""

        def check(obj: Object | None, uid: str = uid, where: ObjectRef = where) -> bool | None:
            nonlocal said
            if obj is None or (uid and obj["metadata"].get("uid") != uid):
                return True
            if (held := outcome.holding_deletion(obj)) and held != said:
                said = held
                session.note(f"{where}: {held}")
            return None

        left = None if deadline is None else max(0.001, deadline - time.monotonic())
        try:
            with attempting(f"wait for {where} to go"):
                until(session.api, where, check, timeout=left)
        except DeadlineError as late:
            finalizers = (late.last or {"metadata": {}})["metadata"].get("finalizers") or []
            why = said or (
                f"held by finalizers {', '.join(finalizers)}" if finalizers else "its processes have not ended"
            )
            raise CliError(
                f"{where} is still there after {timeout:g} s",
                why=why,
                next=f"pdc describe {where.display}",
                exit_code=TIMEOUT,
            ) from None


def _report_missing(args: argparse.Namespace, missing: list[ObjectRef]) -> int:
    if not missing or args.ignore_not_found:
        return OK
    raise CliError(
        f"{len(missing)} of the objects did not exist" if len(missing) > 1 else f"{missing[0]} does not exist",
        why=", ".join(where.display for where in missing) if len(missing) > 1 else "there was nothing to delete",
        next="the same command with --ignore-not-found, if that is fine",
        exit_code=NOT_FOUND,
        missing=(missing[0].name, (missing[0].resource.full_name,)) if len(missing) == 1 else None,
    )
