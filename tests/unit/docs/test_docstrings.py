"""Names in backticks, in docstrings and comments of the source, exist: a file that moves takes its name along."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[3] / "src" / "paddlecloud"

# Commands, values and protocol words: names of something else than Python.
OTHER_NAMES = {
    # commands, and what people type after them
    *("deploy", "edit", "ls", "pdc", "pdj", "pdjs", "pds", "ps", "slow", "undo"),
    # values and files of users
    *("digits", "fit", "image.yaml", "train", "train.py"),
    # expressions on objects
    *("client.jobs", "client.jobs.run", "inputs.parameters.x", "job.spec", "job.status", "spec.nodeName"),
    # of Paddle, Python, Go, Linux
    *("auto", "await", "fmt", "no_new_privs", "set_epoch", "start_tls"),
}

QUOTED = re.compile(r"(?<!`)`([a-z_][a-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*|(?:[a-z0-9_]+/)+[a-z0-9_]+\.py)`")
COMMENT = re.compile(r"(?:^|\s)# .*")


class Mention(NamedTuple):
    line: int
    name: str


class Source(NamedTuple):
    mentions: list[Mention]
    identifiers: set[str]


@cache
def sources() -> dict[Path, Source]:
    files = [file for file in SOURCE.rglob("*.py") if "recipes" not in file.parts]
    return {file.relative_to(SOURCE): read(file.read_text()) for file in files}


def read(program: str) -> Source:
    """What the documentation of a module mentions, and the words of its code."""
    mentions: list[Mention] = []
    lines = program.splitlines()
    for node in ast.walk(ast.parse(program)):
        # Attributes have docstrings, too: a string that stands alone documents what is above it.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            mentions += quoted(node.lineno, str(node.value.value))
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            lines[first:last] = [""] * (last - first)
    for number, line in enumerate(lines):
        if comment := COMMENT.search(line):
            mentions += quoted(number + 1, comment[0])
            lines[number] = line[: comment.start()]
    return Source(mentions, set(re.findall(r"\w+", "\n".join(lines))))


def quoted(line: int, text: str) -> list[Mention]:
    return [Mention(line + text[: match.start()].count("\n"), match[1]) for match in QUOTED.finditer(text)]


@cache
def defined(module: Path) -> set[str]:
    """Names that the module gives to its importers, and those of the classes in it."""
    found: set[str] = set()
    for statement in ast.walk(ast.parse(module.read_text())):
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {alias.asname or alias.name for alias in names}
    return found


@cache
def places() -> dict[str, list[Path]]:
    """Modules, packages and data files, by the name that a sentence gives them."""
    found: dict[str, list[Path]] = {}
    for path in SOURCE.rglob("*"):
        if "recipes" not in path.parts and "__pycache__" not in path.parts:
            found.setdefault(path.stem, []).append(path)
            found.setdefault(path.name, []).append(path)
    return found


def exists(name: str, file: Path) -> bool:
    if "/" in name:
        return any(str(path).endswith("/" + name) for path in places().get(Path(name).name, []))
    if "." in name:
        return dotted_exists(name, file)
    return (
        name in places()
        or name in sys.stdlib_module_names
        or name in identifiers_in(file.parent)
        or name in OTHER_NAMES
    )


@cache
def identifiers_in(folder: Path) -> set[str]:
    return {name for file, source in sources().items() if file.parent == folder for name in source.identifiers}


def dotted_exists(name: str, file: Path) -> bool:
    """Whether a name like `kube.errors.invalid` leads to a module or to what one defines.

    Names that begin with none of our modules are fields of objects, or of other libraries: not judged here.
    """
    if name.endswith((".org", ".com")) or name in OTHER_NAMES:
        return True
    if name.endswith(".py"):
        return name in places()
    first, *rest = name.removeprefix("paddlecloud.").split(".")
    starts = [path for path in places().get(first, []) if path.is_dir() or path.suffix == ".py"]
    return not starts or first in sources()[file].identifiers or any(leads(path, rest) for path in starts)


def leads(path: Path, rest: list[str]) -> bool:
    if not rest:
        return True
    if path.is_dir():
        inside = [path / rest[0], path / f"{rest[0]}.py"]
        return any(leads(place, rest[1:]) for place in inside if place.exists()) or leads(path / "__init__.py", rest)
    return path.exists() and set(rest) <= defined(path)


def test_every_module_that_a_docstring_names_exists() -> None:
    unknown = [
        f"{file}:{mention.line}: `{mention.name}`"
        for file, source in sorted(sources().items())
        for mention in source.mentions
        if not exists(mention.name, file)
    ]
    assert unknown == []
