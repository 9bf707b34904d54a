"""Argument parsing: the global flags every command understands, and help texts."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from paddlecloud.cli.command_table import COMMANDS, Command
from paddlecloud.cli.failures import UsageError
from paddlecloud.kube.nearest import nearest, question

OUTPUT_HELP = "json, yaml, name, wide, jsonpath=…, go-template=… or custom-columns=…; not every command has all of them"


class Parser(argparse.ArgumentParser):
    """Raises `UsageError` instead of ending the process, so that every failure is reported in one place."""

    given: Sequence[str] = ()
    """The arguments that are parsed."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("the following arguments are required"):
            known = self._option_string_actions
            self.refuse_unknown([one for one in self.given if one[:2] == "--" and one.partition("=")[0] not in known])
            if (missing := self._missing_choice(message)) is not None:
                raise UsageError(
                    f"{self.prog}: say what to do: {', '.join(_offered(missing))}", next=f"{self.prog} --help"
                )
        raise UsageError(f"{self.prog}: {message}", next=f"{self.prog} --help")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            meant = question(str(value), known)
            text = f"{value!r} is none of {', '.join(known)}" + (f": {meant}" if meant else "")
            raise argparse.ArgumentError(action, text)

    def _missing_choice(self, message: str) -> argparse.Action | None:
        """The word that says what to do, if that is what is missing: names come after it."""
        named = message.partition(": ")[2].split(", ")[0]
        positional = (action for action in self._actions if not action.option_strings)
        choosing = (action for action in positional if action.choices)
        return next((action for action in choosing if named in (action.dest, action.metavar)), None)

    def refuse_unknown(self, words: list[str]) -> None:
        """What no flag and no argument takes, with the flag that was meant."""
        if not words:
            return
        flag = words[0].partition("=")[0]
        meant = self._meant_flag(flag) if flag.startswith("-") else ""
        what = f"unknown flag {flag}" if flag.startswith("-") else f'"{words[0]}" is one argument too many'
        raise UsageError(f"{self.prog}: {what}", why=meant, next=f"{self.prog} --help")

    def _meant_flag(self, flag: str) -> str:
        """Compared without their dashes: two that all flags begin with make none of them alike."""
        known = {one.lstrip("-"): one for one in self._option_string_actions if one.startswith("--")}
        found = nearest(flag.lstrip("-"), known)
        return f'did you mean "{known[found]}"?' if found else ""


class Parsers:
    """What `add_commands` receives: the part of argparse's subparsers that command modules use.

    A command that takes words which are not its own (`run -- python train.py`) says `set_defaults(after_dashes=[])`
    and finds everything after `--` in `args.after_dashes`, untouched.
    """

    def __init__(self) -> None:
        self._parsers: dict[str, Parser] = {}

    def add_parser(self, name: str, *, help: str = "", **options: Any) -> argparse.ArgumentParser:
        options.setdefault("description", help or None)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        parser = Parser(prog=f"pdc {name}", allow_abbrev=False, **options)
        add_global_flags(parser)
        self._parsers[name] = parser
        return parser

    # For completion

    def flags(self, command: Command) -> list[str]:
        """The long flags of a command."""
        known = self._parsers[command.name]._option_string_actions
        return sorted(flag for flag in known if flag.startswith("--"))

    def takes_value(self, command: Command, flag: str) -> bool:
        action = self._parsers[command.name]._option_string_actions.get(flag)
        return action is not None and action.nargs != 0

    def values(self, command: Command, flag: str) -> list[str]:
        """The values between which a flag chooses; empty for any other."""
        action = self._parsers[command.name]._option_string_actions.get(flag)
        return _offered(action) if action is not None else []

    def words(self, command: Command) -> list[list[str]]:
        """For each argument in turn the words between which it chooses; empty for names and the like."""
        return [_offered(action) for action in self._parsers[command.name]._actions if not action.option_strings]

    def parse(self, command: Command, arguments: list[str]) -> argparse.Namespace:
        parser = self._parsers[command.name]
        if parser.description is None:
            parser.description = command.help
        parser.set_defaults(command=command.name)
        rest: list[str] = []
        if parser.get_default("after_dashes") is not None and "--" in arguments:
            cut = arguments.index("--")
            arguments, rest = arguments[:cut], arguments[cut + 1 :]
        parser.given = arguments
        # Intermixed, so that `get pods -w web-0` means what it says.
        args, unknown = parser.parse_known_intermixed_args(_booleans(parser, arguments))
        program = _program(parser, arguments, getattr(args, "words", []), unknown)
        if program:
            args.words = program
        else:
            parser.refuse_unknown(unknown)
        args.after_dashes = rest
        return args


def _program(parser: Parser, arguments: list[str], words: list[str], unknown: list[str]) -> list[str]:
    """Of a command whose program is to stand after `--`: the program that stands before it, with the flags that no
    command has; empty where the first of these comes before any word, and so was meant for the command."""
    if not words or not unknown or parser.get_default("after_dashes") is None:
        return []
    pairs = enumerate(zip(["", *arguments], arguments, strict=False))
    start = next((n for n, (before, word) in pairs if word == words[0] and not _takes_value(parser, before)), 0)
    return arguments[start:] if unknown[0] in arguments[start:] else []


def _takes_value(parser: Parser, word: str) -> bool:
    action = parser._option_string_actions.get(word)
    return action is not None and action.nargs != 0


def _offered(action: argparse.Action) -> list[str]:
    """A metavar such as nodes|pods|pdj leaves out the aliases among the choices."""
    if action.choices is None:
        return []
    shown = action.metavar if isinstance(action.metavar, str) and "|" in action.metavar else ""
    return shown.split("|") if shown else [str(choice) for choice in action.choices]


def _booleans(parser: argparse.ArgumentParser, arguments: list[str]) -> list[str]:
    """kubectl's `--wait=false` and `--force=true` in argparse's words: `--no-wait` and `--force`."""
    known = parser._option_string_actions
    plain: list[str] = []
    for index, argument in enumerate(arguments):
        if argument == "--":
            return plain + arguments[index:]
        flag, equals, value = argument.partition("=")
        action = known.get(flag)
        if action is not None and action.nargs == "?" and not equals and action.choices is not None:
            following = arguments[index + 1 : index + 2]  # a word that it cannot take is an argument of the command
            plain.append(argument if following and following[0] in action.choices else f"{flag}={action.const}")
        elif not equals or action is None or action.nargs != 0:
            plain.append(argument)
        elif value not in ("true", "false"):
            raise UsageError(f"{flag} takes true or false, not {value!r}", next=f"{parser.prog} --help")
        elif value == "true":
            plain.append(flag)
        elif f"--no-{flag[2:]}" in known:
            plain.append(f"--no-{flag[2:]}")
    return plain


def add_global_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("global flags")
    group.add_argument("-n", "--namespace", metavar="NS", help="namespace (default: the context's)")
    group.add_argument("--context", metavar="NAME", help="kubeconfig context to use")
    group.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig file (default: $KUBECONFIG, ~/.kube/config)")
    group.add_argument("-o", "--output", metavar="FORMAT", default="", help=OUTPUT_HELP)
    group.add_argument("-y", "--yes", action="store_true", help="answer every prompt with yes")
    group.add_argument("--debug", action="store_true", help="show tracebacks and requests")


def add_all_namespaces(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="across all namespaces")


def add_selectors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-l", "--selector", metavar="LABELS", help="label selector: app=web,tier!=db")
    parser.add_argument("--field-selector", metavar="FIELDS", help="field selector: status.phase=Running")


def number(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """An argparse type: a whole number within bounds."""

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{value} is not between {least} and {most}")
        return value

    return convert


def add_files(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """`-f` as often as wanted, and `-R`."""
    parser.add_argument(
        "-f", "--filename", action="append", default=[], required=required, metavar="PATH", help="file, directory or -"
    )
    parser.add_argument("-R", "--recursive", action="store_true", help="descend into sub-directories")


def add_dry_run(parser: argparse.ArgumentParser, *, help: str) -> None:
    """`--dry-run` alone means the client's, as kubectl had it and other commands have it."""
    choices = ("none", "client", "server")
    parser.add_argument("--dry-run", nargs="?", const="client", choices=choices, default="none", help=help)


def duration(text: str) -> float:
    """An argparse type: `90`, `90s`, `1h30m`, `500ms`, `2d`, in seconds."""
    import re

    from paddlecloud.api.durations import WITH_DAYS, seconds_of

    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if (seconds := seconds_of(text, WITH_DAYS)) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 90s, 5m or 1h30m")
    return seconds


def overview() -> str:
    """`pdc --help`."""
    lines = ["pdc: train, cache and serve PaddlePaddle on any Kubernetes, or on this machine alone.", ""]
    for section in dict.fromkeys(command.section for command in COMMANDS):
        lines += [section, *(f"  {one.name:<14} {one.help}" for one in COMMANDS if one.section == section), ""]
    lines += [
        "Global flags",
        "  -n NS  --context NAME  --kubeconfig FILE  -o FORMAT  -y  --debug, before or after the command",
        "",
        "`pdc COMMAND --help` shows the flags of a command.",
    ]
    return "\n".join(lines) + "\n"
