"""`pdc pipeline login` and `logout`: a token in kfp's own settings, so that scripts stay as they are.

Both generations of kfp read `~/.config/kfp/context.json` and send the header that it names with every request, to
each host they are given. The file is therefore written only on request, for its owner alone, with a token of the
account that may work in the namespace of pipelines and nowhere else, and ends after a day. Who may ask for no such
token, or works in another namespace, gets the token of the context.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from paddlecloud.cli.failures import CliError, attempting
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import Forbidden, NotFound
from paddlecloud.kube.resource import SERVICEACCOUNTS
from paddlecloud.kube.wording import cause_of
from paddlecloud.local.privatefiles import write_private
from paddlecloud.pipelines import names

LASTS = 24 * 3600
"""Seconds."""
_NAME, _VALUE = "client_authentication_header_name", "client_authentication_header_value"


def settings_file() -> Path:
    """Where kfp looks; it has no variable for another place."""
    return Path(os.path.expanduser("~/.config/kfp/context.json"))


def run_login(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.sdk.pipelines import address

    output.parse_format(args.output, ("", *output.STRUCTURED))
    with attempting("find the pipelines' API"):
        host, token = address(args.kubeconfig, args.context)
    path = settings_file()
    held = _read(path)
    wanted, expires = args.namespace or held.get("namespace") or "", ""
    if wanted in ("", names.SYSTEM_NAMESPACE) and (short := _short_lived(session)):
        token, expires = short
    held |= {
        "namespace": wanted,
        _NAME: "Authorization",
        _VALUE: f"Bearer {token}",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, json.dumps(held).encode())
    body = {"host": host, "file": str(path), "namespace": held["namespace"], "expires": expires}
    if args.output:
        output.print_report(session, "PipelineLogin", body)
        return 0
    if expires:
        session.print(f"{path} has a token for namespace {names.SYSTEM_NAMESPACE}, which ends at {expires}")
    else:
        session.print(f"{path} has the token of this context")
    session.print(f"kfp.Client(host={host!r}) works from now on")
    session.note("kfp sends it to every host that it is given; pdc pipeline logout removes it")
    return 0


def _short_lived(session: Session) -> tuple[str, str] | None:
    """A token and the time of its end; None for people who may not ask for one."""
    path = SERVICEACCOUNTS.path(names.SYSTEM_NAMESPACE, names.USER, "token")
    body = {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": LASTS},
    }  # fmt: skip
    try:
        with attempting("get a token for pipelines"):
            answer = session.api.do(session.api.client.raw("POST", path, body=body))
    except CliError as error:
        if isinstance(error.__cause__, (Forbidden, NotFound)):
            return None
        raise
    status = json.loads(answer.body)["status"]
    return status["token"], status["expirationTimestamp"]


def run_logout(session: Session, args: argparse.Namespace) -> int:
    output.parse_format(args.output, ("", *output.STRUCTURED))
    path = settings_file()
    held = _read(path)
    there = held.pop(_VALUE, None) is not None
    held.pop(_NAME, None)
    if there:
        write_private(path, json.dumps({"namespace": "", **held}).encode())
    if args.output:
        output.print_report(session, "PipelineLogin", {"file": str(path), "removed": there})
    else:
        session.print(f"{path} has no token {'any more' if there else 'of a platform'}")
    return 0


def _read(path: Path) -> dict[str, Any]:
    try:
        held = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CliError(f"cannot read {path}", why=cause_of(error), next=f"mend or remove {path}") from error
    if not isinstance(held, dict):
        raise CliError(f"{path} is not kfp's: it holds no mapping", next=f"mend or remove {path}")
    return held


RUN = {"login": run_login, "logout": run_logout}
