"""`pdc __complete`: candidates for the last word of a command line, one per line.

Called by the shell at every Tab, so it is quick, asks a server only for kinds and names, gives up after two seconds and
says nothing when something is wrong: a completion that prints errors is worse than none.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import pairwise

from paddlecloud.cli import commands
from paddlecloud.cli.main import VALUE_FLAGS
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.session import Session

SECONDS = 2.0
FORMATS = ("json", "yaml", "name", "wide", "jsonpath=", "custom-columns=")


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("__complete")
    parser.set_defaults(run=run, after_dashes=[])


def run(session: Session, args: argparse.Namespace) -> int:
    session.timeout = SECONDS
    try:
        for candidate in candidates(session, args.after_dashes or [""]):
            session.print(candidate)
    except Exception:  # the reason is in the docstring
        if args.debug:
            raise
    return 0


def candidates(session: Session, words: list[str]) -> Iterable[str]:
    *before, current = words
    _take_globals(session, before)
    if before and before[-1] in VALUE_FLAGS:
        return _starting(_values(session, VALUE_FLAGS[before[-1]]), current)
    positionals = _positionals(before)
    if not positionals:
        return _starting((command.name for command in commands.COMMANDS), current)
    command = commands.find(positionals[0])
    if command is None:
        return ()
    if current.startswith("-"):
        return _starting(_flags(command), current)
    return _starting(_arguments(session, command, positionals[1:], current), current)


def _starting(found: Iterable[str], prefix: str) -> list[str]:
    return [one for one in found if one.startswith(prefix) and one.isprintable()]


def _take_globals(session: Session, before: list[str]) -> None:
    """The namespace, context and kubeconfig already on the line decide what is offered."""
    for flag, value in pairwise(before):
        if VALUE_FLAGS.get(flag) in ("namespace", "context", "kubeconfig"):
            setattr(session.args, VALUE_FLAGS[flag], value)


def _positionals(before: list[str]) -> list[str]:
    found, skip = [], False
    for word in before:
        if skip:
            skip = False
        elif word in VALUE_FLAGS or word in ("-f", "-l"):
            skip = True
        elif not word.startswith("-"):
            found.append(word)
    return found


def _flags(command: commands.Command) -> list[str]:
    import importlib

    parsers = Parsers()
    importlib.import_module(command.module).add_commands(parsers)
    return parsers.flags(command)


def _values(session: Session, what: str) -> Iterable[str]:
    if what == "output":
        return FORMATS
    if what == "namespace":
        return _names(session, "namespaces")
    if what == "context":
        from paddlecloud.cli.kubeconfig import merged_files

        return list(merged_files(session.args.kubeconfig)["contexts"])
    return ()


_SHORT = {"jobs": "pdj", "services": "pds"}
"""Kinds whose names alone are arguments."""


def _arguments(session: Session, command: commands.Command, given: list[str], current: str) -> Iterable[str]:
    if command.name == "completion":
        from paddlecloud.cli.completion import SCRIPTS

        return () if given else SCRIPTS
    if command.takes in _SHORT:
        return _names(session, _SHORT[command.takes])
    if command.takes != "objects":
        return ()
    kind, slash, _ = current.partition("/")
    if slash:
        return [f"{kind}/{name}" for name in _names(session, kind)]
    if given:
        return _names(session, given[0].partition("/")[0])
    return sorted({entry.resource.plural for entry in session.api.discovery() if "list" in entry.verbs})


def _names(session: Session, kind: str) -> list[str]:
    resource = session.api.entry(kind).resource
    namespace = session.namespace if resource.namespaced else None
    found = session.api.do(session.api.client.list(resource, namespace))
    return [str(obj["metadata"]["name"]) for obj in found.items]
