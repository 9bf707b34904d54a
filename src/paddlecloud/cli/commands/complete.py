"""`pdc __complete`: candidates for the last word of a command line, one per line.

Called by the shell at every Tab, so it is quick, asks a server only for kinds and names, gives up after two seconds and
says nothing when something is wrong: a completion that prints errors is worse than none.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from itertools import pairwise

from paddlecloud.api.names import MODEL_LABEL
from paddlecloud.cli import command_table
from paddlecloud.cli.main import VALUE_FLAGS
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import MODELS, MODELVERSIONS

SECONDS = 2.0
FORMATS = ("json", "yaml", "name", "wide", "jsonpath=", "go-template=", "go-template-file=", "custom-columns=")


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
    words = _positionals(before)
    if not words:
        return _starting((command.name for command in command_table.COMMANDS), current)
    command = command_table.find(words[0])
    if command is None:
        return ()
    parsers = _parsers(command)
    if current.startswith("-"):
        return _starting(parsers.flags(command), current)
    if before[-1].startswith("-") and parsers.takes_value(command, before[-1]):
        named = _OF_FLAGS.get(before[-1])
        found = parsers.values(command, before[-1]) or (named(session) if named else ())
        return _starting(found, current)
    given = _positionals(before, lambda flag: parsers.takes_value(command, flag))[1:]
    choices = parsers.words(command)
    if len(given) < len(choices) and choices[len(given)]:
        return _starting(choices[len(given)], current)
    return _starting(_arguments(session, command, given, current), current)


def _starting(found: Iterable[str], prefix: str) -> list[str]:
    return [one for one in found if one.startswith(prefix) and one.isprintable()]


def _take_globals(session: Session, before: list[str]) -> None:
    """The namespace, context and kubeconfig already on the line decide what is offered."""
    for flag, value in pairwise(before):
        if VALUE_FLAGS.get(flag) in ("namespace", "context", "kubeconfig"):
            setattr(session.args, VALUE_FLAGS[flag], value)


def _positionals(before: list[str], takes_value: Callable[[str], bool] = lambda flag: False) -> list[str]:
    found, skip = [], False
    for word in before:
        if skip:
            skip = False
        elif word in VALUE_FLAGS or word in ("-f", "-l") or takes_value(word):
            skip = True
        elif not word.startswith("-"):
            found.append(word)
    return found


def _parsers(command: command_table.Command) -> Parsers:
    import importlib

    parsers = Parsers()
    importlib.import_module(command.module).add_commands(parsers)
    return parsers


def _values(session: Session, what: str) -> Iterable[str]:
    if what == "output":
        return FORMATS
    if what == "namespace":
        return _names(session, "namespaces")
    if what == "context":
        from paddlecloud.cli.commands.kubeconfig import merged_files

        return list(merged_files(session.args.kubeconfig)["contexts"])
    return ()


_KINDS = {"jobs": ("pdj",), "jobs or pods": ("pdj", "pods"), "services": ("pds",)}
"""Whose names alone are arguments; of other kinds with the kind before them."""


def _arguments(session: Session, command: command_table.Command, given: list[str], current: str) -> Iterable[str]:
    kind, slash, _ = current.partition("/")
    if command.takes in _KINDS and not slash:
        return [name for one in _KINDS[command.takes] for name in _names(session, one)]
    if command.takes in ("objects", *_KINDS):
        if slash:
            return [f"{kind}/{name}" for name in _names(session, kind)]
        if given:
            return _names(session, given[0].partition("/")[0])
        if command.name == "explain" and "." in current:
            return _fields(session, current)
        return _kinds(session, short=bool(current))
    if command.takes == "models" and given and (separator := re.search("[:@]", current)):
        return _versions_and_aliases(session, current[: separator.start()])
    after_a_word = _AFTER_A_WORD.get(command.takes)
    return after_a_word(session, given) if after_a_word else ()


def _kinds(session: Session, *, short: bool) -> list[str]:
    """By their plural; with `short`, for a word that has begun, by their short names as well."""
    listed = [entry for entry in session.api.discovery() if "list" in entry.verbs]
    return sorted({name for one in listed for name in (one.resource.plural, *(one.short_names if short else ()))})


def _fields(session: Session, current: str) -> list[str]:
    """The fields of the kind, or field, before the last dot."""
    from paddlecloud.cli.objects.schema import children, descend, fetch

    before = current.rpartition(".")[0]
    kind, *path = before.split(".")
    resource = session.api.entry(kind).resource
    document = fetch(session.api, resource)
    return [f"{before}.{field.path[-1]}" for field in children(document, descend(document, resource, path))]


def _sets(session: Session, given: list[str]) -> list[str]:
    return _names(session, "samplesets") if len(given) == 1 else []


def _runs(session: Session, given: list[str]) -> list[str]:
    """Of pipelines; `run` and `schedule` take files, which the shell completes."""
    return _names(session, "workflows") if given and given[0] in _OF_RUNS else []


_OF_RUNS = frozenset({"show", "logs", "artifacts", "retry", "resubmit", "stop", "resume", "diff", "cache"})


def _nodes(session: Session, given: list[str]) -> list[str]:
    return _names(session, "nodes") if given[0] != "add" else []


def _images(session: Session, given: list[str]) -> list[str]:
    if given[0] == "import":
        return []  # files, which the shell knows
    from paddlecloud.cli.commands.image import known_names, store_of
    from paddlecloud.cli.objects.embedded import data_of

    session.args.data = None
    return known_names(store_of(data_of(session)))


def _models(session: Session, given: list[str]) -> list[str]:
    return _names(session, "models") if len(given) == 1 else []


def _tenants(session: Session, given: list[str]) -> list[str]:
    return _names(session, "profiles.kubeflow.org") if len(given) == 1 and given[0] != "create" else []


def _versions_and_aliases(session: Session, model: str) -> list[str]:
    api, namespace = session.api, session.namespace
    versions = api.do(api.client.list(MODELVERSIONS, namespace, label_selector=f"{MODEL_LABEL}={model}")).items
    known = (api.do(api.client.get(MODELS, model, namespace)).get("spec") or {}).get("aliases") or {}
    return [f"{model}:{obj['spec']['version']}" for obj in versions] + [f"{model}@{alias}" for alias in sorted(known)]


def _of_kind(session: Session, given: list[str]) -> list[str]:
    return _names(session, given[0]) if len(given) == 1 else []


_AFTER_A_WORD: dict[str, Callable[[Session, list[str]], Iterable[str]]] = {
    "models": _models,
    "tenants": _tenants,
    "sets": _sets,
    "nodes": _nodes,
    "runs": _runs,
    "images": _images,
    "names": _of_kind,
}


_OF_FLAGS: dict[str, Callable[[Session], Iterable[str]]] = {"--image": lambda session: _images(session, ["ls"])}
"""Values of flags that name something."""


def _names(session: Session, kind: str) -> list[str]:
    resource = session.api.entry(kind).resource
    namespace = session.namespace if resource.namespaced else None
    found = session.api.do(session.api.client.list(resource, namespace))
    return [str(obj["metadata"]["name"]) for obj in found.items]
