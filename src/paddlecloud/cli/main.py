"""Entry point of `pdc`: finds the command, imports its module alone, turns failures into texts and exit codes.

Global flags are understood before and after the command, as kubectl's users expect, so the command name is found
first and one flat parser is built for it. `pdc --help` is printed from the table without building any parser.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from paddlecloud.cli import command_table

VALUE_FLAGS = {
    "-n": "namespace",
    "--namespace": "namespace",
    "--context": "context",
    "--kubeconfig": "kubeconfig",
    "-o": "output",
    "--output": "output",
}
"""Global flags that take a value: what must be skipped to find the command."""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return _reader_left()
    except SystemExit as stop:  # argparse after --help
        return stop.code if isinstance(stop.code, int) else 2
    except Exception as error:
        return _report(error, arguments)


def split_command(arguments: list[str]) -> tuple[str | None, list[str]]:
    """The command name, and every other argument in order. Only global flags may stand before the command."""
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        if not argument.startswith("-") or argument == "-":
            return argument, arguments[:index] + arguments[index + 1 :]
        index += 2 if argument in VALUE_FLAGS else 1
    return None, arguments


def _dispatch(arguments: list[str]) -> int:
    name, rest = split_command(arguments)
    if name is None:
        return _without_command(rest)
    if name == "help":
        name, rest = (rest[0], ["--help"]) if rest and not rest[0].startswith("-") else (None, [])
        if name is None:
            return _without_command([])
    command = command_table.find(name)
    if command is None:
        raise _unknown_command(name)

    import importlib

    from paddlecloud.cli.parsing import Parsers
    from paddlecloud.cli.session import Session

    parsers = Parsers()
    importlib.import_module(command.module).add_commands(parsers)
    args = parsers.parse(command, rest)
    with Session(args) as session:
        try:
            code = args.run(session, args)
        except Exception as error:
            from paddlecloud.cli.objects import suggestions

            suggestions.add(session, error)
            raise
    return int(code or 0)


def _without_command(flags: list[str]) -> int:
    if "--version" in flags:
        import paddlecloud

        print(f"pdc {paddlecloud.__version__}")
        return 0
    unknown = [flag for flag in flags if flag.startswith("-") and flag not in ("-h", "--help")]
    if unknown:
        from paddlecloud.cli.failures import UsageError

        raise UsageError(f"no command given before or after {unknown[0]}")
    from paddlecloud.cli.parsing import overview

    print(overview(), end="")
    return 0


def _unknown_command(name: str) -> Exception:
    from paddlecloud.cli.failures import UsageError
    from paddlecloud.kube.nearest import nearest

    close = nearest(name, [command.name for command in command_table.COMMANDS])
    return UsageError(
        f'unknown command "{name}"',
        why=f'did you mean "{close}"?' if close else "",
        next=f"pdc {close} --help" if close else "pdc --help",
    )


def _reader_left() -> int:
    """The program reading our output closed the pipe (`| head`). Nothing failed; the interpreter must not complain."""
    import os

    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    return 0


def _report(error: Exception, arguments: list[str]) -> int:
    if "--debug" in arguments:
        import traceback

        traceback.print_exc()
    from paddlecloud.cli.failures import CliError, from_api, from_config, render
    from paddlecloud.kube.errors import ApiError, ConfigError

    if isinstance(error, CliError):
        failure = error
    elif isinstance(error, ConfigError):
        failure = from_config(error)
    elif isinstance(error, ApiError):
        failure = from_api(error, doing=f"pdc {split_command(arguments)[0]} failed")
    else:
        failure = CliError(
            f"pdc {split_command(arguments)[0]} stopped on an error it did not expect",
            why=f"{type(error).__name__}: {error}",
            next="the same command with --debug, and report what it prints",
        )
    print(render(failure, as_json=_wants_json(arguments)), file=sys.stderr)
    return failure.exit_code


def _wants_json(arguments: list[str]) -> bool:
    """Asked of the raw arguments, because the failure may be that they could not be parsed."""
    for index, argument in enumerate(arguments):
        if argument in ("-ojson", "--output=json", "-o=json"):
            return True
        if argument in ("-o", "--output") and arguments[index + 1 : index + 2] == ["json"]:
            return True
    return False


if __name__ == "__main__":
    sys.exit(main())
