"""Runs a Python program in a process that has its modules already: the end of a fork from a warm parent.

Stands in for `exec python …`: same arguments, environment, exit code and clean-up, without starting an interpreter.
What a fork would share by accident (random states) is renewed. Standard library only: the shim imports this.
"""

from __future__ import annotations

import atexit
import os
import runpy
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

_PLAIN_FLAGS = ("-u", "-B", "-E", "-s", "-I", "-O")
"""Options that change nothing that matters here, or are honoured below (`-u`)."""

inherited: frozenset[int] = frozenset()
"""Descriptors that preloaded modules opened; they stay open. Set by the zygote before it forks."""


def can_run(argv: Sequence[str]) -> bool:
    """Whether `argv` is a call of Python that can be carried out here."""
    if not os.path.basename(argv[0]).startswith("python"):
        return False
    rest = _without_flags(argv[1:])
    return bool(rest) and (not rest[0].startswith("-") or (rest[0] in ("-c", "-m") and len(rest) > 1))


def _without_flags(arguments: Sequence[str]) -> list[str]:
    rest = list(arguments)
    while rest and rest[0] in _PLAIN_FLAGS:
        rest.pop(0)
    return rest


def run(argv: Sequence[str], env: dict[str, str]) -> NoReturn:
    """Become the program. The caller has its streams, identity and root in place."""
    code = 1
    try:
        _take_over(argv, env)
        rest = _without_flags(argv[1:])
        try:
            code = _run(rest)
        except SystemExit as end:
            code = _exit_code(end)
        except BaseException:  # what an interpreter would do at its top level
            sys.excepthook(*sys.exc_info())
            code = 130 if sys.exc_info()[0] is KeyboardInterrupt else 1
        _wind_up()
    finally:
        os._exit(code)


def _take_over(argv: Sequence[str], env: dict[str, str]) -> None:
    _close_the_shims_files()
    os.environ.clear()
    os.environ.update(env)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unbuffered = "-u" in argv[1:] or bool(env.get("PYTHONUNBUFFERED"))
    # These live as long as the process does.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    if unbuffered:
        sys.stdout.reconfigure(write_through=True)
    for number, folder in enumerate(filter(None, env.get("PYTHONPATH", "").split(":"))):
        sys.path.insert(number, folder)
    if (random := sys.modules.get("numpy.random")) is not None:
        random.seed()


def _close_the_shims_files() -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in inherited:
            try:
                os.close(int(name))
            except OSError:
                continue  # the descriptor of the listing itself


def _run(rest: list[str]) -> int:
    kind = rest[0]
    if kind == "-m":
        sys.argv = rest[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[2:]]
        sys.path.insert(0, "")
        scope = {"__name__": "__main__", "__builtins__": __builtins__}
        exec(compile(rest[1], "<string>", "exec"), scope)  # noqa: S102 - this is what `python -c` is
    else:
        sys.argv = rest
        sys.path.insert(0, os.path.dirname(os.path.abspath(kind)))
        runpy.run_path(kind, run_name="__main__")
    return 0


def _exit_code(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    print(end.code, file=sys.stderr)
    return 1


def _wind_up() -> None:
    """What an interpreter does before it goes: wait for threads, run exit handlers, flush."""
    if (threading := sys.modules.get("threading")) is not None:
        threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
