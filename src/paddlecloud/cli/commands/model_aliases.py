"""`pdc model tag`, `untag`, `promote` and `rollback`: aliases, each move with an entry in the history."""

from __future__ import annotations

import argparse
import time
from typing import Any

from paddlecloud.api.model import reference
from paddlecloud.cli.failures import OK
from paddlecloud.cli.objects.model_store import attempting
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.nearest import question
from paddlecloud.kube.resource import MODELVERSIONS
from paddlecloud.kube.times import rfc3339
from paddlecloud.modelhub import signature
from paddlecloud.sdk import model_aliases, model_objects
from paddlecloud.sdk.model_aliases import AliasMove

FORMATS = ("", *output.STRUCTURED)
PRODUCTION = "production"


def tag(session: Session, args: argparse.Namespace) -> int:
    text, alias = args.names
    return _point(session, args, text, alias)


def promote(session: Session, args: argparse.Namespace) -> int:
    return _point(session, args, args.names[0], args.to or PRODUCTION)


def _point(session: Session, args: argparse.Namespace, text: str, alias: str) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    with attempting(f"point {alias} to {text}"):
        wanted = reference.parse(text)
        reference.alias_name(alias)
        client, namespace = session.api.client, session.namespace
        version = session.api.do(model_objects.resolve(client, namespace, wanted))
        by, at = _who(session)
        done = session.api.do(
            model_aliases.move_alias(client, namespace, wanted.model, alias, version, by=by, at=at, reason=args.reason)
        )
    _warn_clients(session, wanted.model, alias, done)
    if not done.before:
        others = sorted((model_objects.spec_of(done.model).aliases or {}).keys() - {alias})
        meant = question(alias, others)
        listed = f"; the others are {', '.join(others)}" if others else ""
        session.note(f"{wanted.model}@{alias} is a new alias{listed}" + (f"; {meant}" if meant else ""))
    return _report(session, fmt, wanted.model, alias, done, by)


def _warn_clients(session: Session, model: str, alias: str, done: AliasMove) -> None:
    """Programs that ask a service of the alias send what the version before took."""
    if not done.before or done.before == done.to:
        return
    client, namespace = session.api.client, session.namespace
    found = [
        session.api.do(client.find(MODELVERSIONS, reference.object_name(model, version), namespace))
        for version in (done.before, done.to)
    ]
    before, after = (signature.of_version(one) if one is not None else None for one in found)
    if changes := signature.differences(before, after):
        session.warn(f"clients of {model}@{alias} may have to change: {'; '.join(changes)}")


def untag(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    with attempting(f"remove the alias {args.names[0]}"):
        wanted = reference.alias_of(args.names[0])
        by, at = _who(session)
        done = session.api.do(model_aliases.remove_alias(
            session.api.client, session.namespace, wanted.model, wanted.alias, by=by, at=at, reason=args.reason
        ))  # fmt: skip
    return _report(session, fmt, wanted.model, wanted.alias, done, by)


def rollback(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    with attempting(f"roll {args.names[0]} back", next=f"pdc model show {args.names[0]}"):
        wanted = reference.alias_of(args.names[0])
        by, at = _who(session)
        done = session.api.do(model_aliases.roll_back(
            session.api.client, session.namespace, wanted.model, wanted.alias, by=by, at=at, reason=args.reason
        ))  # fmt: skip
    for version in done.skipped:
        session.note(f"{wanted.model}:{version} no longer exists and is left out")
    return _report(session, fmt, wanted.model, wanted.alias, done, by)


def _report(session: Session, fmt: output.Format, model: str, alias: str, done: AliasMove, by: str) -> int:
    moved = done.before != done.to
    if fmt.name:
        body: dict[str, Any] = {"model": model, "alias": alias, "previous": done.before or None}
        output.print_report(session, "ModelTag", {**body, "version": done.to or None, "by": by, "moved": moved})
    elif not done.to:
        session.print(f"{model}@{alias} is removed; it was {done.before}")
    elif not moved:
        session.print(f"{model}@{alias} is {done.to} already")
    else:
        session.print(f"{model}@{alias} is now {done.to}" + (f"; it was {done.before}" if done.before else ""))
    if moved and done.before and not fmt.name:
        session.note(f"back:  pdc model tag {model}:{done.before} {alias}{session.namespace_flag} --reason TEXT")
    return OK


def _who(session: Session) -> tuple[str, str]:
    return session.api.do(model_objects.user_name(session.api.client)), rfc3339(time.time())
