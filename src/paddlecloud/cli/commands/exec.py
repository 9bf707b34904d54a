"""`pdc exec`: run a program in a container of a pod. Its exit code becomes pdc's own.

A job stands for its first running worker; --rank chooses another. -i passes standard input on, -t gives the program a
terminal (-it for a shell).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
from contextlib import ExitStack

from paddlecloud.cli import terminal
from paddlecloud.cli.failures import UsageError, attempting
from paddlecloud.cli.objects.members import Member
from paddlecloud.cli.objects.pods import one_pod
from paddlecloud.cli.parsing import Parsers, number
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.sdk.remote import Process, Remote

USAGE = "pdc exec [-it] POD|JOB|KIND/NAME [-c CONTAINER] -- COMMAND"


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("exec", description=__doc__, usage=USAGE)
    parser.add_argument("subject", metavar="POD|JOB|KIND/NAME")
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("-i", "--stdin", action="store_true", help="pass standard input to the program")
    parser.add_argument("-t", "--tty", action="store_true", help="give the program a terminal")
    parser.add_argument("-c", "--container", metavar="NAME", help="container (default: the first)")
    parser.add_argument("--rank", type=number(0), metavar="N", help="of a job: this worker")
    parser.set_defaults(run=run, after_dashes=[])


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    command = _command(args)
    tty = args.tty and _has_terminal(session)
    if fmt.name and (args.stdin or tty):
        raise UsageError("-o collects the output, so -i and -t make no sense with it", next="leave -o out")
    hints: dict[str, str] = {}
    with attempting(f"run {command[0]} in {args.subject}", hints=hints):
        member = one_pod(session, args.subject, rank=args.rank)
        hints["BadRequest"] = f"pdc describe pod/{member.name}"
        if fmt.name:
            code, out, err = asyncio.run(_collect(session, member, command))
            body = {"pod": member.name, "command": command, "exitCode": code, "stdout": out, "stderr": err}
            output.print_report(session, "ExecReport", body)
            return code
        return asyncio.run(_converse(session, member, command, tty=tty))


def _command(args: argparse.Namespace) -> list[str]:
    if args.words:
        given = shlex.join([*args.words, *args.after_dashes])
        raise UsageError("what to run comes after --", next=f"pdc exec {args.subject} -- {given}")
    if not args.after_dashes:
        raise UsageError("there is no program to run", why=USAGE, next="pdc exec --help")
    return list(args.after_dashes)


def _has_terminal(session: Session) -> bool:
    if sys.stdin.isatty():
        return True
    session.warn("no terminal for the program: standard input is none")
    return False


async def _converse(session: Session, member: Member, command: list[str], *, tty: bool) -> int:
    stdin = session.args.stdin
    remote = Remote(session.api.config)
    try:
        process = await _start(session, remote, member, command, stdin=stdin, tty=tty)
        tasks: set[asyncio.Task[None]] = set()
        with ExitStack() as stack:
            if tty:
                stack.enter_context(terminal.raw_keys())
                stack.enter_context(terminal.on_resize(lambda *size: _spawn(tasks, process.resize(*size))))
            if stdin:
                _spawn(tasks, _feed(session, process))
            try:
                while (piece := await process.read()) is not None:
                    _write(1 if piece.stream == "stdout" else 2, piece.data)
            finally:
                for task in tasks:
                    task.cancel()
                await process.close()
        return process.exit_code
    finally:
        await remote.close()


async def _collect(session: Session, member: Member, command: list[str]) -> tuple[int, str, str]:
    remote = Remote(session.api.config)
    try:
        process = await _start(session, remote, member, command, stdin=False, tty=False)
        collected: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        while (piece := await process.read()) is not None:
            collected[piece.stream].append(piece.data)
        await process.close()
        out, err = (b"".join(collected[name]).decode(errors="replace") for name in ("stdout", "stderr"))
        return process.exit_code, out, err
    finally:
        await remote.close()


async def _start(
    session: Session, remote: Remote, member: Member, command: list[str], *, stdin: bool, tty: bool
) -> Process:
    namespace = str(member.pod["metadata"]["namespace"])
    container = member.container(session.args.container)
    return await remote.exec(namespace, member.name, command, container=container, stdin=stdin, tty=tty)


async def _feed(session: Session, process: Process) -> None:
    async for data in terminal.standard_input():
        await process.write(data)
    if not process.can_end_input:
        session.warn("this server cannot signal the end of input (it is older than 1.30)")
    await process.end_input()


def _spawn(tasks: set[asyncio.Task[None]], work: object) -> None:
    assert asyncio.iscoroutine(work)
    task: asyncio.Task[None] = asyncio.ensure_future(work)
    tasks.add(task)
    task.add_done_callback(_settled)
    task.add_done_callback(tasks.discard)


def _settled(task: asyncio.Task[None]) -> None:
    """A side that could not be served ends with the connection, and the reader of the output reports how."""
    if not task.cancelled():
        task.exception()


def _write(descriptor: int, data: bytes) -> None:
    """Past Python's own buffers: what a program printed appears when it is printed, bytes or text."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
