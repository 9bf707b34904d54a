"""`pdc model rm` and `retain`: which versions go, by hand or by themselves."""

from __future__ import annotations

import argparse
from typing import Any

from paddlecloud.api.model import reference
from paddlecloud.cli.failures import NOT_FOUND, OK, CliError, UsageError
from paddlecloud.cli.objects.model_store import attempting, place_of
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import MODELS
from paddlecloud.sdk import model_objects, model_removal

FORMATS = ("", *output.STRUCTURED)


def rm(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    text = args.names[0]
    model, colon, version = text.partition(":")
    if "@" in text:
        why = "an alias is a pointer"
        raise UsageError("a version is removed by its own name", why=why, next=f"pdc model show {text}")
    with attempting(f"remove {text}", next=f"pdc model ls {model}"):
        place = place_of(session)
        every = "" if colon else " with all its versions, aliases and their history"
        session.confirm(f"Remove {text}{every}?")
        removed = session.api.do(model_removal.remove(place, text, force=args.force))
    if colon and not removed:
        raise CliError(
            f"model {model} has no version {version} in namespace {session.namespace}",
            next=f"pdc model ls {model}",
            exit_code=NOT_FOUND,
            missing=(model, ("models",)),
        )
    if fmt.name:
        output.print_report(session, "ModelRemoval", {"model": model, "versions": removed})
    else:
        session.print(f"{text} removed; `pdc model gc` frees the space of files that no other version has")
    return OK


def retain(session: Session, args: argparse.Namespace) -> int:
    """What the API server refuses (a count of 0, an age of `30`) is its message."""
    fmt = output.parse_format(args.output, FORMATS)
    if bool(args.count or args.age) == args.everything:
        why = "they say what is kept; --everything ends it"
        raise UsageError("model retain takes --count, --age or both, or --everything", why=why, next="pdc model --help")
    given: dict[str, Any] = {"count": args.count, "age": args.age or None}
    kept = None if args.everything else given
    with attempting(f"set what is kept of {args.names[0]}"):
        model = reference.model_name(args.names[0])
        client, namespace = session.api.client, session.namespace
        session.api.do(model_objects.find_model(client, namespace, model))
        session.api.do(client.patch(MODELS, model, {"spec": {"retention": kept}}, namespace=namespace))
    if fmt.name:
        body = {name: value for name, value in given.items() if value} if kept else None
        output.print_report(session, "ModelRetention", {"model": model, "retention": body})
    else:
        words = [f"the newest {args.count}"] if args.count else []
        words += [f"those of the last {args.age}"] if args.age else []
        session.print(f"{model}: {' and '.join(words) or 'all versions'} are kept")
        if kept:
            session.note(f"next:  pdc model show {model}{session.namespace_flag} shows what is removed next")
    return OK
