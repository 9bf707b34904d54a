"""`pdc image ci --push REGISTRY/FOLDER [SUITE…]`: the builds of the suites' images as Tekton objects, to be applied.

pdc image ci --push registry.example.org/team --push-secret docker-push -n builds | kubectl apply -f -
"""

from __future__ import annotations

import argparse
import dataclasses

import yaml

from paddlecloud.cli.failures import INVALID, NOT_FOUND, OK, CliError, UsageError
from paddlecloud.cli.session import Session
from paddlecloud.kube.nearest import question
from paddlecloud.local.images import shipped
from paddlecloud.local.images.ci import BUILDER, tekton, triggers
from paddlecloud.local.images.errors import RecipeError
from paddlecloud.local.images.suites import Suites, read_suites
from paddlecloud.platform.own_image import NAME


def run(session: Session, args: argparse.Namespace) -> int:
    if not args.push or "/" not in args.push.rstrip("/"):
        raise UsageError("where are images to be pushed?", why="--push REGISTRY/FOLDER", next="pdc image --help")
    settings = tekton.Settings(
        registry=args.push.rstrip("/"),
        namespace=args.namespace or "default",
        tool=args.tool or NAME,
        builder=args.builder or BUILDER,
        plain_http=args.plain_http,
        pip_index=args.pip_index or "",
        push_secret=args.push_secret or "",
        webhook_secret=args.webhook_secret or "",
    )
    found = _chosen(_suites(), args.names)
    objects = [*tekton.builds(found, settings), *triggers.triggers(found, settings)]
    session.print_data(yaml.safe_dump_all(objects, sort_keys=False, width=120))
    return OK


def _suites() -> Suites:
    path = shipped.suites_file()
    if path is None:
        raise CliError(
            "there are no suites",
            why="they come with the package paddlecloud-suites",
            next='pip install "paddlecloud[suites]", or pip install ./suites in a checkout',
            exit_code=NOT_FOUND,
        )
    try:
        return read_suites(path)
    except RecipeError as error:
        raise CliError("cannot read the suites", why=str(error), exit_code=INVALID) from error


def _chosen(found: Suites, names: list[str]) -> Suites:
    known = {suite.repository_name: suite for suite in found.suites}
    for name in names:
        if name.lower() not in known:
            why = question(name.lower(), list(known)) or f"there are {', '.join(known)}"
            raise CliError(f"there is no suite {name}", why=why, exit_code=NOT_FOUND)
    chosen = [known[name.lower()] for name in names] or found.suites
    return dataclasses.replace(found, suites=tuple(chosen))
