"""`pdc install`, `pdc uninstall`: the controllers on a cluster, by the Helm chart that comes with this package.

install looks first (may I, is the version known, what engines are there), then installs or upgrades, waits, and shows
what is ready. Everything that Helm can set is set with --set. uninstall takes the controllers away and keeps what users
made, and its kinds; --with-data takes those away first, while there is somebody to clean up behind them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from paddlecloud.cli.failures import CONFLICT, ERROR, FORBIDDEN, OK, TIMEOUT, CliError, attempting
from paddlecloud.cli.objects import cluster_checks
from paddlecloud.cli.objects.embedded import is_embedded
from paddlecloud.cli.parsing import Parsers, duration
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import DEPLOYMENTS, Object
from paddlecloud.platform.chart import chart

NAMESPACE, RELEASE = "paddlecloud", "pdc"


def add_commands(parsers: Parsers) -> None:
    for name, run in (("install", install), ("uninstall", uninstall)):
        parser = parsers.add_parser(name, description=__doc__)
        parser.add_argument("--release", default=RELEASE, metavar="NAME", help=f"name for Helm (default {RELEASE})")
        parser.add_argument(
            "--timeout", type=duration, default=300.0, metavar="TIME", help="how long to wait (default 5m)"
        )
        if name == "install":
            parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a value of the chart")
            parser.add_argument("--values", action="append", default=[], metavar="FILE", help="a file of values")
        else:
            parser.add_argument("--with-data", action="store_true", help="also the kinds, and with them all objects")
        parser.set_defaults(run=run, data=None)


def install(session: Session, args: argparse.Namespace) -> int:
    with attempting("install"):
        _check(session)
        helm = _helm(session)
        for check in cluster_checks.ENGINE_CHECKS:
            finding = check.run(session)
            session.print(f"{finding.status:<4}  {check.name:<8} {finding.meaning or finding.detail}")
        prepared = _prepare_this_machine(session) if is_embedded(session) else []
        values = [word for value in (*prepared, *args.set) for word in ("--set", value)]
        values += [word for file in args.values for word in ("--values", file)]
        command = [*helm, "upgrade", "--install", args.release, str(chart()), "--create-namespace"]
        code = _run([*command, "--namespace", _namespace(session), "--wait", *_limit(args), *values])
        if code != OK:
            raise CliError(
                "Helm did not get it to work, see above",
                next=f"pdc -n {_namespace(session)} get pods,events",
                exit_code=ERROR,
            )
        _show(session, args.release)
    return OK


def uninstall(session: Session, args: argparse.Namespace) -> int:
    with attempting("uninstall"):
        _refuse_own(session, next="pdc down stops it, with them")
        if args.with_data:
            session.confirm("Delete every PaddleJob, SampleSet, SampleJob and PaddleService of the cluster")
            _delete_kinds(session, timeout=args.timeout)
        command = [*_helm(session), "uninstall", args.release, "--namespace", _namespace(session), "--wait"]
        code = _run([*command, *_limit(args)])
        if code != OK:
            raise CliError(f"Helm did not uninstall {args.release}, see above", next="helm list -A")
        if not args.with_data:
            session.print("what users made is still there, and so are its kinds; --with-data would take them away")
    return OK


def _check(session: Session) -> None:
    for check, code in ((cluster_checks.version, ERROR), (cluster_checks.rights, FORBIDDEN)):
        finding = check(session)
        if finding.status == "fail":
            raise CliError(finding.detail, why=finding.meaning, next=finding.fix, exit_code=code)
    _refuse_own(session, next="nothing to do; or pdc down, then pdc up --no-controllers, to try the chart")


def _refuse_own(session: Session, *, next: str) -> None:
    if is_embedded(session) and _controllers_run(session):
        raise CliError("the embedded platform runs these controllers itself", next=next, exit_code=CONFLICT)


def _prepare_this_machine(session: Session) -> list[str]:
    """No registry is asked here: have the image built, and say as whom its pods run, who must be able to read it."""
    import asyncio

    from paddlecloud.cli.objects.embedded import data_of
    from paddlecloud.local.images.store import ImageStore
    from paddlecloud.platform import own_image

    recipes = own_image.write_recipe(data_of(session) / "images")
    asyncio.run(ImageStore(folders=[recipes]).build(own_image.NAME))
    user, group = os.getuid(), os.getgid()
    context = {"runAsNonRoot": "false", "runAsUser": user, "runAsGroup": group, "fsGroup": group}
    return [f"podSecurityContext.{name}={value}" for name, value in context.items()]


def _controllers_run(session: Session) -> bool:
    from paddlecloud.cli.objects.embedded import data_of
    from paddlecloud.platform import endpoint

    found = endpoint.find(data_of(session))
    daemon = endpoint.daemon_of(found.pid) if found is not None else None
    return daemon is None or daemon.controllers


def _helm(session: Session) -> list[str]:
    """With the context that pdc was given; the helm on PATH, else the one beside this Python."""
    found = shutil.which("helm") or shutil.which("helm", path=str(Path(sys.executable).parent))
    if found is None:
        raise CliError("there is no helm on this machine", next=cluster_checks.HELM_FIX)
    flags = {"--kubeconfig": session.args.kubeconfig, "--kube-context": session.args.context}
    return [found, *(word for flag, value in flags.items() if value for word in (flag, str(value)))]


def _limit(args: argparse.Namespace) -> list[str]:
    return ["--timeout", f"{args.timeout:g}s"]


def _namespace(session: Session) -> str:
    return str(session.args.namespace or NAMESPACE)


def _run(command: list[str]) -> int:
    sys.stdout.flush()
    return subprocess.run(command, check=False).returncode


def _show(session: Session, release: str) -> None:
    listed = session.api.client.list(
        DEPLOYMENTS, _namespace(session), label_selector=f"app.kubernetes.io/instance={release}"
    )
    for deployment in session.api.do(listed).items:
        session.print(f"{deployment['metadata']['name']}: {_ready(deployment)} ready")


def _ready(deployment: Object) -> str:
    return f"{deployment.get('status', {}).get('readyReplicas', 0)}/{deployment['spec'].get('replicas', 1)}"


def _delete_kinds(session: Session, *, timeout: float) -> None:
    """And with them all objects. Some go only when their controller has put things in order: it must still be there."""
    from paddlecloud.api import KINDS
    from paddlecloud.api.crd import generate
    from paddlecloud.cli.objects.placing import of_object
    from paddlecloud.cli.objects.waiting import DeadlineError, until
    from paddlecloud.kube.errors import NotFound
    from paddlecloud.kube.resource import CRDS

    definitions = generate(KINDS)
    for definition in definitions:
        try:
            session.api.do(session.api.client.delete(CRDS, definition["metadata"]["name"]))
        except NotFound:
            continue
        session.print(f"{output.name_of(definition)} deleted")
    deadline = time.monotonic() + timeout
    for definition in definitions:
        place = of_object(CRDS, definition)
        left = max(0.001, deadline - time.monotonic())
        try:
            until(session.api, place, lambda found: True if found is None else None, timeout=left)
        except DeadlineError:
            raise CliError(
                f"objects of {place.display} are still there after {timeout:g} s",
                why="their controllers have not let go of them; nothing is uninstalled yet",
                next=f"pdc get {definition['spec']['names']['plural']} -A, then the same command again",
                exit_code=TIMEOUT,
            ) from None
