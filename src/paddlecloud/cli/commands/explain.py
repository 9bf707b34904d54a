"""`pdc explain`: a verdict on an object (`pdj/x`, or a job by its name), or the schema of a field (`pdj.spec.worker`).

A verdict is one true sentence, in English or Chinese, with a word a program can match. What waits for a node also gets
the scheduler's account of it: what it needs, what is free where, who holds it, and what would let it start.
"""

from __future__ import annotations

import argparse
from typing import Any

from paddlecloud.cli.failures import NOT_FOUND, CliError, attempting
from paddlecloud.cli.objects import outcome, targets
from paddlecloud.cli.objects.embedded import is_embedded
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.phrases import LANGUAGES, preferred, say
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.discovery import UnknownKind

USAGE = "pdc explain KIND/NAME, JOB or KIND[.FIELD…]"
COLOURS = {"ok": "green", "failed": "red"}


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("explain", description=__doc__)
    parser.add_argument(
        "subject", metavar="KIND/NAME|JOB|KIND.FIELD", help="an object, or a kind with a path of fields"
    )
    parser.add_argument("--lang", choices=LANGUAGES, help="language of the verdict (default: that of the locale)")
    parser.add_argument("--recursive", action="store_true", help="all fields below, without descriptions")
    parser.add_argument("--api-version", metavar="GROUP/VERSION", help="this version of the kind")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    with attempting(f"explain {args.subject}"):
        subject = args.subject
        if "." not in subject:
            [subject] = targets.with_jobs(session.api, [subject], session.namespace)
            _refuse_unknown(session, subject)
        return _object(session, args, subject, fmt) if "/" in subject else _field(session, args, fmt)


def _refuse_unknown(session: Session, word: str) -> None:
    """A word that is no kind was rather meant as the name of a job."""
    if "/" in word:
        return
    try:
        session.api.entry(word)
    except UnknownKind as error:
        text = f"there is no PaddleJob {word} in namespace {session.namespace}, and {error}"
        raise CliError(
            text,
            next="pdc get pdj, or KIND/NAME for an object of another kind",
            exit_code=NOT_FOUND,
            missing=(word, ("pdj",)),
        ) from None


def _object(session: Session, args: argparse.Namespace, subject: str, fmt: output.Format) -> int:
    from paddlecloud.cli.objects.examination import examine

    entry, name = targets.one(session.api, [subject], usage=USAGE)
    namespace = session.namespace if entry.resource.namespaced else None
    obj = session.api.do(session.api.client.get(entry.resource, name, namespace))
    language = args.lang or preferred()
    members, _, verdict = examine(session, obj, language=language)
    scheduling = None
    if verdict.state == "waiting":
        from paddlecloud.cli.render import scheduling as explain_verdict

        scheduling = explain_verdict.scheduling(session, obj, [one.pod for one in members], language=language)
    if fmt.name:
        body = {"object": targets.display(entry.resource, name), "namespace": namespace, **verdict._asdict()}
        output.print_report(session, "Verdict", {**body, **({"scheduling": scheduling.body} if scheduling else {})})
        return 0
    state = session.paint(say(language, f"state-{verdict.state}"), COLOURS.get(verdict.state, "yellow"))
    reason = say(language, "heading-reason", reason=verdict.reason) if verdict.reason else ""
    session.print(say(language, "heading", subject=args.subject, state=state, reason=reason))
    session.print(f"  {verdict.text}")
    for line in (*verdict.details, *(scheduling.lines if scheduling else ())):
        session.print(f"  {line}")
    if step := outcome.next_step(obj, embedded=is_embedded(session)) if verdict.state == "failed" else "":
        session.print("  " + say(language, "next", step=step))
    return 0


def _field(session: Session, args: argparse.Namespace, fmt: output.Format) -> int:
    from paddlecloud.cli.objects.schema import descend, fetch
    from paddlecloud.cli.render import schema

    kind, *path = args.subject.split(".")
    resource = session.api.entry(kind).resource
    if args.api_version:
        resource = session.api.resource_of({"apiVersion": args.api_version, "kind": resource.kind})
    document = fetch(session.api, resource)
    field = descend(document, resource, path)
    if fmt.name:
        body: dict[str, Any] = {"group": resource.group, "version": resource.version, "kindName": resource.kind}
        output.print_report(session, "FieldReport", {**body, **schema.report(document, field)})
        return 0
    session.print(schema.render(document, resource, field, recursive=args.recursive))
    return 0
