"""`pdc crds`: the CustomResourceDefinitions of this project, ready for `pdc apply -f -`.

`--apply` does that at once, taking over what another installer (or an older release) defined, and waits until the kinds
are served. The fields of older objects are all still there. `--profiles` adds Kubeflow's Profile, by which tenants are
made, for clusters without Kubeflow: a definition that somebody else made is not taken over.
"""

from __future__ import annotations

import argparse

from paddlecloud.cli.failures import OK, InputError, attempting
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import CRDS, Object


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("crds", description=__doc__)
    parser.add_argument("--apply", action="store_true", help="define them on the server instead of printing them")
    parser.add_argument("--profiles", action="store_true", help="with Profile of kubeflow.org, for tenants")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    from paddlecloud.api import KINDS, profile
    from paddlecloud.api.crd import generate

    tenants = (profile.DECLARATION,) if args.profiles else ()
    definitions = generate([*KINDS, *tenants])  # a cluster has Volcano's and Kubeflow's from their owners
    if args.apply:
        for declaration in tenants:
            _refuse_foreign(session, declaration.name)
        return _define(session, definitions)
    if fmt.name in ("", "yaml"):
        from paddlecloud.kube.yamlio import dump_all

        session.print_data(dump_all(definitions))
    else:
        output.print_objects(session, definitions, fmt, single=False)
    return 0


def _refuse_foreign(session: Session, name: str) -> None:
    """Two controllers would carry out every Profile, with different ideas of what is to be kept."""
    with attempting(f"look for {name}"):
        found = session.api.do(session.api.client.find(CRDS, name))
    if found is not None and not any(map(_has_contributors, found["spec"]["versions"])):
        raise InputError(
            f"{name} is defined by somebody else",
            why="on a cluster with Kubeflow its own controller makes tenants",
            next="leave out --profiles, and `tenants.enabled` in values of the chart",
        )


def _has_contributors(version: Object) -> bool:
    """A field of ours that Kubeflow's definition does not have: its access management keeps them elsewhere."""
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    spec = (schema.get("properties") or {}).get("spec") or {}
    return "contributors" in (spec.get("properties") or {})


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
