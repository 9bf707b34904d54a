"""`pdc up`, `pdc down`, `pdc status`: the embedded platform as a background process of this user."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecloud.cli.failures import CONFLICT, ERROR, UNREACHABLE, USAGE, CliError
from paddlecloud.cli.objects.node_values import quantities
from paddlecloud.cli.parsing import Parsers, number
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.wording import cause_of
from paddlecloud.platform import endpoint, kubeconfig, lifecycle
from paddlecloud.platform.lifecycle import Started

if TYPE_CHECKING:
    from paddlecloud.cli.objects.unfinished import Unfinished

_SERVERS = {
    endpoint.PIPELINES_PORT: ("the pipelines' API", "pipelines"),
    endpoint.HUB_PORT: ("the model hub", "hub"),
}
"""File with the port → what it is, and the field of the endpoint."""
EXIT_CODES = {"usage": USAGE, "conflict": CONFLICT, "other": ERROR}


def add_commands(parsers: Parsers) -> None:
    up = parsers.add_parser("up", help="start the embedded platform and wait until it is ready")
    _add_data(up)
    up.add_argument("--port", type=number(0, 65535), help="port of the API from now on (default: the one it has had)")
    up.add_argument(
        "--nodes",
        type=number(1, lifecycle.MAX_NODES),
        metavar="N",
        help="divide the machine among N nodes (default: as before, else 1)",
    )
    up.add_argument("--simulated", type=number(0, 20_000), metavar="N", help="have N nodes whose pods start no process")
    up.add_argument(
        "--simulated-capacity",
        type=quantities,
        metavar="cpu=…,…",
        help="what each of them has (default: cpu=32,memory=256Gi,pods=250)",
    )
    up.add_argument(
        "--no-controllers", action="store_true", help="run none of our controllers: the Helm chart installs them"
    )
    up.add_argument("--durable", action="store_true", help="fsync every commit: survives a power cut, writes slower")
    up.set_defaults(run=run_up)
    down = parsers.add_parser(
        "down",
        help="stop the embedded platform and its pods; the data stays, jobs and workflows go on after the next start",
    )
    _add_data(down)
    down.set_defaults(run=run_down)
    status = parsers.add_parser("status", help="show the embedded platform")
    _add_data(status)
    status.set_defaults(run=run_status)


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, metavar="DIR", help="data directory (default: ~/.paddlecloud)")


def _data(args: argparse.Namespace) -> Path:
    return Path(args.data).expanduser().resolve() if args.data else endpoint.default_data()


@contextmanager
def _failures() -> Iterator[None]:
    """What the platform reports as failed, with the exit code of its cause."""
    try:
        yield
    except lifecycle.PlatformFailed as error:
        raise CliError(error.message, why=error.why, next=error.next, exit_code=EXIT_CODES[error.cause]) from error


def _format(args: argparse.Namespace) -> output.Format:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    output.check(fmt)
    return fmt


def run_up(session: Session, args: argparse.Namespace) -> int:
    _format(args)
    data = _data(args)
    options = lifecycle.StartOptions(
        port=args.port,
        nodes=args.nodes,
        simulated=args.simulated,
        simulated_capacity=args.simulated_capacity,
        durable=args.durable,
        controllers=not args.no_controllers,
    )
    former = {name: endpoint.kept_number(data, name) for name in _SERVERS}
    with _failures():
        started = lifecycle.start(data, options, report=session.note)
    if started.new:
        session.note(f"platform ready in {started.seconds:.1f} s")
    if started.endpoint.port != endpoint.kept_port(data):
        _warn_of_another_port(session, data, started.endpoint.port)
    for name, (what, field) in _SERVERS.items():
        if former[name] and (port := getattr(started.endpoint, field)) not in (0, former[name]):
            session.warn(
                f"port {former[name]} of {what} was in use by another program, so it listens on {port} from now on. "
                f"Scripts that name port {former[name]} send their tokens to that program: give them the new address"
            )
    written = _write_users_kubeconfig(session, args, data, started)
    _show_started(session, args, data, started, written)
    return 0


def _warn_of_another_port(session: Session, data: Path, port: int) -> None:
    kept = endpoint.kept_port(data)
    session.warn(
        f"port {kept} of this platform was in use by another program (ss -ltnp 'sport = :{kept}' shows which), so "
        f"it listens on {port} until it is stopped. Kubeconfigs that were copied name port {kept} and do not reach it. "
        f"Free the port, then `pdc down --data {data}` and `pdc up --data {data}`; or give it another port for good, "
        f"with `pdc up --port`, and copy them again"
    )


def _write_users_kubeconfig(session: Session, args: argparse.Namespace, data: Path, started: Started) -> Path:
    """The user's file gets the context when asked for, or when this is the default platform. Where the context is."""
    default = kubeconfig.users_file() if data == endpoint.default_data() else started.kubeconfig
    target = Path(args.kubeconfig) if args.kubeconfig else default
    if target == started.kubeconfig:
        return target
    try:
        former = kubeconfig.merge_into(target, kubeconfig.of_platform(data, started.endpoint.port))
        if former:
            kubeconfig.remember_former(data, target, former)
            session.note(
                f'the current context of {target} was "{former}"; to go back: kubectl config use-context {former} '
                "(pdc down does it, too)"
            )
    except (OSError, ValueError) as error:
        raise CliError(
            f"the platform runs, but its context could not be written to {target}",
            why=cause_of(error),
            next=f"export KUBECONFIG={started.kubeconfig}",
        ) from error
    return target


def _show_started(session: Session, args: argparse.Namespace, data: Path, started: Started, written: Path) -> None:
    found = started.endpoint
    if args.output:
        body = {
            "url": found.url, "pid": found.pid, "data": str(data), "kubeconfig": str(written),
            "context": kubeconfig.CONTEXT, "started": started.new, "pipelines": found.pipelines_url,
            "modelHub": found.hub_url, "dashboard": _dashboard_address(started),
        }  # fmt: skip
        output.print_report(session, "Platform", body)
        return
    session.print(f"{'started' if started.new else 'already running'}: {found.url} (pid {found.pid}, data {data})")
    session.print(f'context "{kubeconfig.CONTEXT}" written to {written}')
    if found.pipelines_url:
        session.print(f"pipelines: {found.pipelines_url} (the API of Kubeflow Pipelines)")
    if found.hub_url:
        session.print(f"model hub: {found.hub_url}")
    if found.dashboard_url:
        once = " (signs you in, once; later: pdc dashboard)" if started.code else " (pdc dashboard signs you in)"
        session.print(f"dashboard: {_dashboard_address(started)}{once}")
    if written != kubeconfig.users_file():
        session.note(f"to use it: export KUBECONFIG={written}")
    session.note("next: pdc get nodes, or pdc run -- python train.py    (a program of yours)")


def _dashboard_address(started: Started) -> str:
    url = started.endpoint.dashboard_url
    return f"{url}/?code={started.code}" if url and started.code else url


def run_down(session: Session, args: argparse.Namespace) -> int:
    fmt = _format(args)
    data = _data(args)
    found = lifecycle.find_daemon(data)
    running = _warn_about_running(session, data) if found is not None and found.alive else None
    with _failures():
        stopped = lifecycle.stop(data, report=session.note)
    if stopped.pods_ended is not None:
        why = "it was killed" if stopped.killed else "it had crashed"
        pods = "1 pod" if stopped.pods_ended == 1 else f"{stopped.pods_ended} pods"
        session.note(f"{why}; {pods} of it ran on and {'was' if stopped.pods_ended == 1 else 'were'} ended")
    if (restored := kubeconfig.restore_former(data)) is not None:
        session.note(f'the current context of {restored[0]} is "{restored[1]}" again')
    if fmt.name:
        body = {
            "data": str(data), "stopped": stopped.was_running, "killed": stopped.killed,
            "jobs": [each._asdict() for each in (running.jobs if running else ())],
            "workflows": [each._asdict() for each in (running.workflows if running else ())],
        }  # fmt: skip
        output.print_report(session, "Platform", body)
    else:
        session.print(f"stopped (data kept in {data})" if stopped.was_running else f"no platform runs on {data}")
    return 0


def _warn_about_running(session: Session, data: Path) -> Unfinished | None:
    """Say which jobs and workflows a stop interrupts; on a terminal, ask whether it should."""
    from paddlecloud.cli.objects import unfinished

    found = unfinished.of_platform(data)
    if found is None:
        session.note("the platform does not answer what runs on it; it is stopped nevertheless")
    elif found.jobs or found.workflows:
        for line in unfinished.lines(found):
            session.note(line)
        if session.can_ask:
            session.confirm("Stop the platform?")
    return found


def run_status(session: Session, args: argparse.Namespace) -> int:
    fmt = _format(args)
    data = _data(args)
    found = lifecycle.status(data)
    body: dict[str, Any] = {"state": found.state, "data": str(data)}
    running = found.endpoint if found.state == "running" else None
    if running is not None:
        body |= {"url": running.url, "pid": running.pid, "uptimeSeconds": round(time.time() - running.started)}
        body |= {"pipelines": running.pipelines_url} if running.pipelines_url else {}
        body |= {"modelHub": running.hub_url} if running.hub_url else {}
        body |= {"dashboard": running.dashboard_url} if running.dashboard_url else {}
        body |= {"residentMegabytes": found.resident >> 20, "kubeconfig": str(kubeconfig.own_file(data))}
    if fmt.name:
        output.print_report(session, "PlatformStatus", body)
    else:
        for name, value in body.items():
            session.print(f"{name:<18} {value}")
        if running is None:
            session.note(f"next: pdc up --data {data}")
    return 0 if running is not None else UNREACHABLE
