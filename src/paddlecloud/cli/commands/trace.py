"""`pdc trace`: where a model came from, and where data, jobs and models went.

  pdc trace model/ocr:7      (or ocr:7, ocr@production)   its job and data, and the services that serve it
  pdc trace sampleset/words  the jobs that read it, the versions they made, and their services
  pdc trace pdj/train        the data it read and the versions it made
  pdc trace pds/ocr          the versions it serves, and where they came from

Versions keep what they recorded: jobs and data that were deleted are shown as gone. Of one namespace.
"""

from __future__ import annotations

import argparse
from typing import Any

from paddlecloud.cli.failures import NOT_FOUND, OK, CliError, InputError, UsageError, attempting
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.phrases import LANGUAGES, preferred
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import MODELS, MODELVERSIONS, PADDLEJOBS, PADDLESERVICES, SAMPLESETS

USAGE = "pdc trace model/NAME:VERSION, pdj/NAME, sampleset/NAME or pds/NAME"


def add_commands(parsers: Parsers) -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = parsers.add_parser("trace", description=__doc__, formatter_class=formatter)
    parser.add_argument("subject", metavar="KIND/NAME", help="a version of a model, a job, a data set or a service")
    parser.add_argument("--lang", choices=LANGUAGES, help="language of the answer (default: that of the locale)")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.api.model.reference import BadReference
    from paddlecloud.cli.render import lineage as rendering
    from paddlecloud.sdk import lineage

    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    with attempting(f"trace {args.subject}"):
        kind, name = _subject(session, args.subject)
        world = session.api.do(lineage.gather(session.api.client, session.namespace))
        try:
            found = lineage.trace(world, kind, name)
        except BadReference as error:
            raise InputError(f"cannot trace {args.subject}", why=str(error), next=USAGE) from error
        except lineage.NotRecorded as error:
            where = f"in namespace {session.namespace}"
            listing = {lineage.VERSION: "pdc model ls"}.get(kind, f"pdc get {kind}")
            missing = (name.partition(":")[0].partition("@")[0], (kind,))
            raise CliError(
                f"{error} {where}", next=listing, exit_code=NOT_FOUND, reason="NotFound", missing=missing
            ) from error
    for text in world.unread:
        session.warn(f"not looked at: {text}")
    if world.is_cut:
        session.warn(f"there is more: {lineage.MOST_NODES:,} objects are shown at most, and {lineage.DEEPEST} in a row")
    if fmt.name:
        body: dict[str, Any] = {
            "object": f"{kind}/{found.node.name}",
            "namespace": session.namespace,
            "node": found.node.report("children"),
        }
        body |= {"from": [one.report("from") for one in found.origin], "to": [one.report("to") for one in found.use]}
        output.print_report(session, "Trace", body)
    else:
        for line in rendering.tree(found, args.lang or preferred()):
            session.print(line)
    return OK


def _subject(session: Session, text: str) -> tuple[str, str]:
    """The kind as `lineage` calls it, and the name."""
    from paddlecloud.sdk import lineage

    kind, slash, name = text.partition("/")
    if not slash:
        return (lineage.VERSION, text) if ":" in text or "@" in text else (lineage.JOB, text)
    if not name or "/" in name:
        raise UsageError(f'"{text}" is not KIND/NAME', next=USAGE)
    known = {
        MODELS.full_name: lineage.VERSION,
        MODELVERSIONS.full_name: lineage.VERSION,
        PADDLEJOBS.full_name: lineage.JOB,
        SAMPLESETS.full_name: lineage.DATA,
        PADDLESERVICES.full_name: lineage.SERVICE,
    }
    resource = session.api.entry(kind).resource
    if resource.full_name not in known:
        raise UsageError(f"a {resource.kind} has no origin that is recorded", next=USAGE)
    if resource.full_name == MODELVERSIONS.full_name:
        name = name.replace(".", ":", 1)
    return known[resource.full_name], name
