"""`pdc crds`: the CustomResourceDefinitions of this project, ready for `pdc apply -f -`.

`--apply` does that at once, taking over what another installer (or an older release) defined, and waits until the kinds
are served. The fields of older objects are all still there.
"""

from __future__ import annotations

import argparse

from paddlecloud.cli.failures import OK, attempting
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import CRDS, Object


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("crds", description=__doc__)
    parser.add_argument("--apply", action="store_true", help="define them on the server instead of printing them")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    from paddlecloud.api import KINDS
    from paddlecloud.api.crd import generate

    definitions = generate(KINDS)  # ours alone: a cluster has Volcano's and Kubeflow's from their owners
    if args.apply:
        return _define(session, definitions)
    if fmt.name in ("", "yaml"):
        from paddlecloud.kube.yamlio import dump_all

        session.print_data(dump_all(definitions))
    else:
        output.print_objects(session, definitions, fmt, single=False)
    return 0


def _define(session: Session, definitions: list[Object]) -> int:
    from paddlecloud.cli.commands.wait import parse_goal, wait_for
    from paddlecloud.cli.objects.placing import of_object

    code = OK
    with attempting("define the kinds"):
        for definition in definitions:
            name = definition["metadata"]["name"]
            applied = session.api.client.patch(
                CRDS, name, definition, kind="apply", field_manager="pdc-crds", force=True
            )
            made = session.api.do(applied)
            goal = parse_goal("condition=Established")
            ended = wait_for(session, of_object(CRDS, made), goal, timeout=30.0)
            session.print(f"{output.name_of(made)} {'established' if ended.exit_code == OK else ended.message}")
            code = code or ended.exit_code
    return code
