"""`pdc port-forward`: ports of this machine that lead to ports of a pod, until Ctrl-C.

  pdc port-forward POD 8080            the same port here
  pdc port-forward JOB 8888:8080       8888 here, 8080 of its first running worker
  pdc port-forward svc/web :http       any free port here, to the port that the Service calls http

A job or Service is looked up again when its pod is gone, so a restart costs one connection and not the forwarding.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable
from typing import NamedTuple

from paddlecloud.cli.failures import CONFLICT, INTERRUPTED, CliError, UsageError, attempting
from paddlecloud.cli.objects.members import Member
from paddlecloud.cli.objects.pods import find, one_pod
from paddlecloud.cli.parsing import Parsers, number
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import ApiError, NotFound
from paddlecloud.kube.resource import Object
from paddlecloud.kube.wording import cause_of
from paddlecloud.sdk.forwarding import Forward
from paddlecloud.sdk.remote import Connection, Remote


class Pair(NamedTuple):
    local: int
    remote: int


def add_commands(parsers: Parsers) -> None:
    usage = "pdc port-forward POD|JOB|KIND/NAME [LOCAL:]REMOTE…"
    parser = parsers.add_parser("port-forward", description=__doc__, usage=usage)
    parser.add_argument("subject", metavar="POD|JOB|KIND/NAME")
    parser.add_argument("ports", nargs="+", metavar="[LOCAL:]REMOTE")
    parser.add_argument("--address", default="127.0.0.1", metavar="IP", help="listen here (default 127.0.0.1)")
    parser.add_argument("--rank", type=number(0), metavar="N", help="of a job: this worker")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", "json"))
    with attempting(f"forward ports of {args.subject}"):
        _, owner = find(session, args.subject)
        member = one_pod(session, args.subject, rank=args.rank)
        pairs = [parse(text, owner, member.pod) for text in args.ports]
        target = ForwardTarget(session, args.subject, member, rank=args.rank)

        def announce(port: int, pair: Pair) -> None:
            _announce(session, member, port, pair.remote, as_json=bool(fmt.name))

        return asyncio.run(serve(session, target, pairs, address=args.address, announce=announce))


def parse(text: str, owner: Object, pod: Object) -> Pair:
    """`8080`, `80:8080`, `:8080`; a Service's ports are those of the Service, names are looked up."""
    local, colon, remote = text.rpartition(":")
    wanted = remote_port(remote, owner, pod)
    if not colon:
        return Pair(int(remote) if remote.isdigit() else wanted, wanted)
    if local and not (local.isdigit() and int(local) < 1 << 16):
        raise UsageError(f'"{text}" is not [LOCAL:]REMOTE', next="pdc port-forward --help")
    return Pair(int(local or 0), wanted)


def remote_port(text: str, owner: Object, pod: Object) -> int:
    """The number of the pod's port that is meant."""
    meant: int | str = int(text) if text.isdigit() else text
    if owner.get("kind") == "Service":
        for port in (owner.get("spec") or {}).get("ports") or ():
            if meant in (port.get("port"), port.get("name")):
                meant = port.get("targetPort") or port["port"]
                break
        else:
            raise UsageError(f"Service {owner['metadata']['name']} has no port {text}", next="pdc get svc")
    if isinstance(meant, str):
        for container in (pod.get("spec") or {}).get("containers") or ():
            for port in container.get("ports") or ():
                if port.get("name") == meant:
                    return int(port["containerPort"])
        raise UsageError(f"no container of pod {pod['metadata']['name']} has a port named {meant!r}", next="a number")
    if not 0 < meant < 1 << 16:
        raise UsageError(f"{text} is no port", next="a number from 1 to 65535")
    return meant


async def serve(
    session: Session, target: ForwardTarget, pairs: list[Pair], *, address: str, announce: Callable[[int, Pair], None]
) -> int:
    """Forward until Ctrl-C; `announce` gets the port that is listened on for each pair."""
    forwards: list[Forward] = []
    try:
        for pair in pairs:
            forward = Forward(target.dial, pair.remote, session.warn)
            forwards.append(forward)
            announce(await _listen(forward, pair, address), pair)
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
        await stopped.wait()
        return INTERRUPTED
    finally:
        for forward in forwards:
            await forward.close()
        await target.close()


async def _listen(forward: Forward, pair: Pair, address: str) -> int:
    try:
        return await forward.listen(address, pair.local)
    except OSError as error:
        raise CliError(
            f"cannot listen on {address}:{pair.local}",
            why=cause_of(error),
            next=f":{pair.remote} takes any free port",
            exit_code=CONFLICT,
        ) from error


def _announce(session: Session, member: Member, port: int, remote: int, *, as_json: bool) -> None:
    address = session.args.address
    if as_json:
        body = {"pod": member.name, "address": address, "port": port, "remotePort": remote}
        session.print_data(output.to_json_line(session.report("PortForward", body)))
    else:
        session.print(f"Forwarding from {address}:{port} -> {remote}")
    sys.stdout.flush()


class ForwardTarget:
    """The pod that connections go to: another one of the same subject when it is gone."""

    def __init__(self, session: Session, subject: str, member: Member, *, rank: int | None = None) -> None:
        self._session = session
        self._subject = subject
        self._rank = rank
        self._remote = Remote(session.api.config)
        self._member = member

    async def dial(self, port: int) -> Connection:
        try:
            return await self._connect(port)
        except ApiError as error:
            try:
                self._member = await asyncio.to_thread(one_pod, self._session, self._subject, rank=self._rank)
            except (ApiError, CliError) as gone:
                raise NotFound(str(gone)) from error
            return await self._connect(port)

    async def close(self) -> None:
        await self._remote.close()

    async def _connect(self, port: int) -> Connection:
        meta = self._member.pod["metadata"]
        return await self._remote.connect(str(meta["namespace"]), str(meta["name"]), port)
