"""`pdc version`: of this program, and of the server unless --client. Without a server that is said, and no failure."""

from __future__ import annotations

import argparse

import paddlecloud
from paddlecloud.cli.failures import UNREACHABLE, CliError, attempting, from_config
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import ConfigError
from paddlecloud.kube.resource import Object


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("version")
    parser.add_argument("--client", action="store_true", help="do not ask the server")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    body: dict[str, object] = {"client": {"version": paddlecloud.__version__}}
    if not args.output:
        session.print(f"pdc     {paddlecloud.__version__}")
    if not args.client:
        try:
            server = _server_version(session)
        except CliError as failure:
            if failure.exit_code != UNREACHABLE:
                raise
            session.note(f"no server answers: {failure.why or failure.message}")
        else:
            body["server"] = {"version": server.get("gitVersion"), "platform": server.get("platform")}
            if not args.output:
                session.print(f"server  {server.get('gitVersion')} ({session.api.config.server})")
    if args.output:
        from paddlecloud.cli.render.output import print_report

        print_report(session, "VersionReport", body)
    return 0


def _server_version(session: Session) -> Object:
    try:
        with attempting("ask the server for its version"):
            return session.api.json("/version")
    except ConfigError as error:  # nothing says which server: there is none yet
        raise from_config(error) from error
