"""`pdc crds`: the CustomResourceDefinitions of this project, ready for `pdc apply -f -`."""

from __future__ import annotations

import argparse

from paddlecloud.cli import output
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.session import Session


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("crds")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    from paddlecloud.api import KINDS
    from paddlecloud.api.crd import generate

    definitions = generate(KINDS)  # ours alone: a cluster has Volcano's and Kubeflow's from their owners
    if fmt.name in ("", "yaml"):
        from paddlecloud.kube.yamlio import dump_all

        session.print(dump_all(definitions))
    else:
        output.print_objects(session, definitions, fmt, single=False)
    return 0
