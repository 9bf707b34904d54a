"""Which calls of Python a fork from a warm parent can stand in for. Pure.

A fork has done the imports of `preload` before the program's first line. That is the same program only if those imports
are what the program does first anyway: before them it may import the standard library and nothing else. So whatever it
sets up itself (variables that the modules read, log handlers, warning filters) comes after them, warm or not.
Options that need an interpreter started for them (`-O`, `-I`, `-X`, …) are not for a fork. Standard library only: the
shim imports this.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

SCRIPT, MODULE, CODE = "script", "-m", "-c"


class PythonCall(NamedTuple):
    """A call of Python, taken apart."""

    argv: tuple[str, ...]
    kind: str
    target: str
    """The script's path, the module's name or the code."""
    arguments: tuple[str, ...]
    unbuffered: bool
    writes_bytecode: bool


def parse(argv: Sequence[str], env: Mapping[str, str]) -> PythonCall | None:
    """None for what is no call of Python, and for one with options that a fork cannot follow."""
    if not argv or not re.fullmatch(r"(.*/)?python[0-9.]*", argv[0]):
        return None
    if any(name.startswith("PYTHON") and name not in (*_AS_THE_PARENT, *_FOLLOWED) for name in env):
        return None
    options = {"u": flag(env, "PYTHONUNBUFFERED"), "B": flag(env, "PYTHONDONTWRITEBYTECODE")}

    def program(kind: str, target: str, arguments: Sequence[str]) -> PythonCall:
        return PythonCall(tuple(argv), kind, target, tuple(arguments), options["u"], not options["B"])

    for number, argument in enumerate(argv[1:], start=1):
        if not argument.startswith("-"):
            return program(SCRIPT, argument, argv[number + 1 :])
        for place, letter in enumerate(argument[1:], start=1):
            if letter in options:
                options[letter] = True
            elif letter in "cm":
                rest = [argument[place + 1 :]] if argument[place + 1 :] else []
                following = [*rest, *argv[number + 1 :]]
                return program(f"-{letter}", following[0], following[1:]) if following else None
            else:
                return None
        if argument == "-":
            return None
    return None


def flag(env: Mapping[str, str], name: str) -> bool:
    """As CPython reads a variable that switches something on: empty and 0 do not, everything else does."""
    value = env.get(name, "")
    return bool(value) and not re.fullmatch(r"\s*[-+]?0+", value)


def begins_with(source: str | bytes, modules: Collection[str], *, inert: Callable[[str], bool]) -> bool:
    """Whether a program imports one of `modules` before it does anything but import `inert` ones."""
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False  # the interpreter says what is wrong with it
    for statement in statements:
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            names = [str(statement.module)]
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        else:
            return False
        for name in names:
            if imports(name, modules):
                return True
            if not inert(name):
                return False
    return False


def imports(name: str, modules: Collection[str]) -> bool:
    """Whether an import of `name` is one of a module listed: of itself or of what lies in it."""
    return any(name == module or name.startswith(f"{module}.") for module in modules)


# Variables

_READ_NATIVELY = (
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "FLAGS_", "GLOG_"),
    *("PYTHON", "LD_", "MALLOC_", "GLIBC_", "LANG", "LC_", "TZ"),
)
"""Beginnings of the variables that the interpreter and native libraries read when they are loaded. Reads by Python code
are recorded while modules are imported; these cannot be."""

_NAMING_CODE = ("PYTHON", "LD_")
"""Beginnings of variables that name code to load, which a number can do as well: a folder may be called 7."""

_FOLLOWED = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")
"""Honoured by the fork itself, whatever its parent was started with."""

_AS_THE_PARENT = ("PYTHONPATH", "PYTHONWARNINGS")
"""Followed because the parent was started with the same value (`parent_environment`)."""

_NUMBER = re.compile(r"[0-9]{1,6}")


def relevant(env: Mapping[str, str], reads: Collection[str]) -> dict[str, str]:
    """The variables on which imported modules may depend; `reads` are those they were recorded to read."""
    return {
        name: value
        for name, value in env.items()
        if (name in reads or name.startswith(_READ_NATIVELY)) and name not in _FOLLOWED
    }


def parent_environment(
    image: Mapping[str, str], env: Mapping[str, str], reads: Collection[str]
) -> dict[str, str] | None:
    """What to start a warm parent with, so that it can be forked for a program with `env`; None if there is no such.

    A parent runs outside of every pod. So it takes from a pod numbers (a rank, a count of threads) and nothing that
    could name code to load; all else comes from the image.
    """
    own = {name: value for name, value in image.items() if name not in _FOLLOWED}
    own |= {
        name: value
        for name, value in relevant(env, reads).items()
        if _NUMBER.fullmatch(value) and not name.startswith(_NAMING_CODE)
    }
    return own if relevant(own, reads) == relevant(env, reads) else None
