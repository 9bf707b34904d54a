"""`pdc up`, `pdc down`, `pdc status`: the embedded platform as a background process of this user."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecloud.cli.failures import CONFLICT, UNREACHABLE, CliError, UsageError
from paddlecloud.cli.objects.node_values import quantities
from paddlecloud.cli.parsing import Parsers, number
from paddlecloud.cli.session import Session
from paddlecloud.platform import machine

if TYPE_CHECKING:
    from paddlecloud.cli.objects.unfinished import Running

NEWS_EVERY = 5.0  # seconds between two words about a start that takes long
START_TIMEOUT = 180.0  # a start takes less than a second, and ten times that on a machine with other work
STOP_TIMEOUT = 30.0


def add_commands(parsers: Parsers) -> None:
    up = parsers.add_parser("up", help="start the embedded platform and wait until it is ready")
    _add_data(up)
    up.add_argument("--port", type=number(0, 65535), help="port of the API from now on (default: the one it has had)")
    up.add_argument(
        "--nodes", type=number(1, 64), metavar="N", help="divide the machine among N nodes (default: as before, else 1)"
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
        "down", help="stop the embedded platform and its pods; the data stays, and jobs go on after the next start"
    )
    _add_data(down)
    down.set_defaults(run=run_down)
    status = parsers.add_parser("status", help="show the embedded platform")
    _add_data(status)
    status.set_defaults(run=run_status)


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, metavar="DIR", help="data directory (default: ~/.paddlecloud)")


def _data(args: argparse.Namespace) -> Path:
    return Path(args.data or machine.default_data()).expanduser().resolve()


def run_up(session: Session, args: argparse.Namespace) -> int:
    data = _data(args)
    found = machine.find(data)
    if found is not None and found.alive:
        if args.port not in (None, 0, found.port):
            raise CliError(
                f"a platform already runs on {data}, at port {found.port}",
                why=f"it cannot move to port {args.port} while it runs",
                next=f"pdc down --data {data}",
                exit_code=CONFLICT,
            )
        if args.nodes not in (None, found.nodes):
            raise CliError(
                f"a platform already runs on {data}, as {_nodes(found.nodes)}",
                why=f"the machine cannot be divided among {args.nodes} while pods run on it",
                next=f"pdc down --data {data}",
                exit_code=CONFLICT,
            )
        started, port = False, found.port
    else:
        started, port = True, _start(session, args, data)
    if port != machine.kept_port(data):
        _warn_of_another_port(session, data, port)
    written = _write_kubeconfigs(args, data, port)
    _say(session, args, data, started=started, written=written)
    return 0


def _warn_of_another_port(session: Session, data: Path, port: int) -> None:
    kept = machine.kept_port(data)
    session.warn(
        f"port {kept} of this platform was in use by another program (ss -ltnp 'sport = :{kept}' shows which), so "
        f"it listens on {port} until it is stopped. Kubeconfigs that were copied name port {kept} and do not reach it. "
        f"Free the port, then `pdc down --data {data}` and `pdc up --data {data}`; or give it another port for good, "
        f"with `pdc up --port`, and copy them again"
    )


def _start(session: Session, args: argparse.Namespace, data: Path) -> int:
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = open(data / "platform.log", "ab", opener=_private)  # noqa: SIM115 - handed to the child
    except OSError as error:
        raise UsageError(
            f"cannot use {data}: {error.strerror}", next="pdc up --data with a directory you may write to"
        ) from error
    kept = machine.kept_port(data) if args.port is None else 0
    wanted = args.port or kept or machine.free_port()
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "paddlecloud.platform.daemon", "--data", str(data), "--port", str(wanted)]
    command += ["--ready-fd", str(writing), "--started-in", os.getcwd()]
    command += ["--nodes", str(args.nodes)] if args.nodes is not None else []
    if args.simulated is not None:
        command += ["--simulated", str(args.simulated)]
        command += ["--simulated-capacity", json.dumps(args.simulated_capacity or {})]
    command += [] if args.port else ["--any-port-if-taken"]
    command += ["--durable"] if args.durable else []
    command += ["--no-controllers"] if args.no_controllers else []
    began = time.monotonic()
    with log:
        daemon = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(writing,), start_new_session=True,
            cwd="/",
        )  # fmt: skip
    os.close(writing)
    answer = _await_ready(session, reading, daemon)
    if "error" in answer:
        raise CliError(
            "the platform did not start",
            why=answer["error"],
            next=answer.get("next") or f"see {data / 'platform.log'}",
            exit_code=CONFLICT if answer.get("conflict") else 1,
        )
    session.note(f"platform ready in {time.monotonic() - began:.1f} s")
    port = int(answer["port"])
    if port == kept or not kept:
        machine.keep_port(data, port)
    return port


def _nodes(count: int) -> str:
    return "one node" if count == 1 else f"{count} nodes"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _await_ready(session: Session, reading: int, daemon: subprocess.Popen[bytes]) -> dict[str, Any]:
    """One line of JSON from the daemon, or the reason why none came. A daemon that is given up is ended, too."""
    import select

    began = time.monotonic()
    with os.fdopen(reading, "rb") as pipe:
        while not select.select([pipe], [], [], NEWS_EVERY)[0]:
            waited = time.monotonic() - began
            if waited > START_TIMEOUT:
                daemon.kill()
                daemon.wait()
                return {"error": f"it was not ready after {waited:.0f} s and was ended"}
            session.note(f"starting the platform: {waited:.0f} s so far")
        line = pipe.readline()
    answer: dict[str, Any] = json.loads(line) if line else {"error": "it ended before it was ready"}
    return answer


def _write_kubeconfigs(args: argparse.Namespace, data: Path, port: int) -> Path:
    """The platform's own file always; the user's when asked for, or when this is the default platform."""
    import base64

    ca = base64.b64encode((data / "pki" / "ca.crt").read_bytes()).decode()
    token = (data / "pki" / "admin.token").read_text().strip()
    ours = machine.kubeconfig(url=f"https://127.0.0.1:{port}", ca=ca, token=token)
    own = data / "kubeconfig"
    machine.write_private(own, json.dumps(ours, indent=1))
    target = Path(args.kubeconfig) if args.kubeconfig else _users_kubeconfig() if _is_default(data) else own
    if target == own:
        return own
    try:
        machine.merge_into(target, ours)
    except (OSError, ValueError) as error:
        raise CliError(
            f"the platform runs, but its context could not be written to {target}",
            why=str(error),
            next=f"export KUBECONFIG={own}",
        ) from error
    return target


def _is_default(data: Path) -> bool:
    return data == machine.default_data().expanduser().resolve()


def _users_kubeconfig() -> Path:
    listed = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return Path(listed[0]) if listed else Path.home() / ".kube" / "config"


def _say(session: Session, args: argparse.Namespace, data: Path, *, started: bool, written: Path) -> None:
    found = machine.find(data)
    if found is None:
        raise CliError("the platform stopped right after it was ready", next=f"see {data / 'platform.log'}")
    if args.output == "json":
        body = {
            "url": found.url, "pid": found.pid, "data": str(data), "kubeconfig": str(written),
            "context": machine.CONTEXT, "started": started,
        }  # fmt: skip
        session.print(json.dumps(session.report("Platform", body)))
        return
    session.print(f"{'started' if started else 'already running'}: {found.url} (pid {found.pid}, data {data})")
    session.print(f'context "{machine.CONTEXT}" written to {written}')
    if written != _users_kubeconfig():
        session.note(f"to use it: export KUBECONFIG={written}")
    session.note("next: pdc get nodes, or pdc run -- python train.py    (a program of yours)")


def run_down(session: Session, args: argparse.Namespace) -> int:
    data = _data(args)
    found = machine.find(data) or machine.unannounced(data)
    running = found is not None and found.alive
    jobs = _warn_about_jobs(session, data) if running else []
    killed = found is not None and found.alive and _end_daemon(session, data, found)
    if found is not None and (killed or not running):
        _end_leftovers(session, data, "it was killed" if killed else "it had crashed")
    machine.withdraw(data)
    if args.output == "json":
        body = {"data": str(data), "stopped": running, "killed": killed, "jobs": [job._asdict() for job in jobs]}
        session.print(json.dumps(session.report("Platform", body)))
    else:
        session.print(f"stopped (data kept in {data})" if running else f"no platform runs on {data}")
    return 0


def _warn_about_jobs(session: Session, data: Path) -> list[Running]:
    """Say which jobs a stop interrupts; on a terminal, ask whether it should."""
    from paddlecloud.cli.objects import unfinished

    jobs = unfinished.of_platform(data)
    if jobs is None:
        session.note("the platform does not answer what runs on it; it is stopped nevertheless")
    elif jobs:
        for line in unfinished.lines(jobs):
            session.note(line)
        if session.can_ask:
            session.confirm("Stop the platform?")
    return jobs or []


def _end_daemon(session: Session, data: Path, found: machine.Endpoint) -> bool:
    """Stop the platform's process; True when it had to be killed."""
    if machine.stop(found, data, timeout=STOP_TIMEOUT):
        return False
    session.note(
        f"the platform (pid {found.pid}) did not stop within {STOP_TIMEOUT:.0f} s and is killed; "
        f"{data / 'platform.log'} may say what it was doing"
    )
    if not machine.kill(found, data, timeout=STOP_TIMEOUT):
        raise CliError(
            f"the platform (pid {found.pid}) is stuck in the kernel and cannot be killed",
            next=f"cat /proc/{found.pid}/stack, then free the device or file system that it waits for",
        )
    return True


def _end_leftovers(session: Session, data: Path, why: str) -> None:
    """The platform is gone without a goodbye: its pods, gateways and mounts may still be there."""
    import asyncio

    from paddlecloud.drivers import drivers_of
    from paddlecloud.local.knative import supervisor
    from paddlecloud.local.kubelet.node import leftovers
    from paddlecloud.local.volumes.errors import VolumeError

    async def end() -> int:
        await supervisor.end_gateways(data / "gateway")
        return await leftovers.end(data, drivers_of(data).values())

    try:
        pods = asyncio.run(end())
    except VolumeError as error:
        raise CliError(str(error), next=f"see who uses it, then pdc down --data {data}") from error
    session.note(f"{why}; {pods} pod{'' if pods == 1 else 's'} of it ran on and {'was' if pods == 1 else 'were'} ended")


def run_status(session: Session, args: argparse.Namespace) -> int:
    data = _data(args)
    found = machine.find(data)
    state = "stopped" if found is None else "running" if found.alive else "crashed"
    body: dict[str, Any] = {"state": state, "data": str(data)}
    if found is not None and found.alive:
        body |= {"url": found.url, "pid": found.pid, "uptimeSeconds": round(time.time() - found.started)}
        body |= {"residentMegabytes": _resident(found.pid), "kubeconfig": str(data / "kubeconfig")}
    if args.output == "json":
        session.print(json.dumps(session.report("PlatformStatus", body)))
    else:
        for name, value in body.items():
            session.print(f"{name:<18} {value}")
        if state != "running":
            session.note(f"next: pdc up --data {data}")
    return 0 if state == "running" else UNREACHABLE


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // (1 << 20)
