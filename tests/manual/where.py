"""Where a test runs, read from its file: on which platform, and how often.

The rules are those of `tests/conftest.py`, the Makefile and `.ci/run`. The folder decides the platform; on a cluster
the markers `core` and `full` decide the tier. What is below `tests/unit` runs on no platform.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLATFORMS = {
    "embedded": ("embedded",),
    "manual": ("embedded",),
    "cluster": ("cluster",),
    "scenarios": ("embedded", "cluster"),
    "conformance": ("embedded", "cluster"),
}
"""The platforms that the tests of a folder run on."""
EVERY_CHANGE, FULL_TIER, ON_A_GPU = TIERS = ("every change", "full tier", "on a GPU")
"""From the most to the least often run."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def exists(name: str) -> bool:
    """Whether `path::function` names a test function."""
    return _found(name) is not None


def is_of_a_unit(name: str) -> bool:
    """Whether a test needs no platform, and so shows nothing of one."""
    return Path(name).parts[1] == "unit"


def tier(name: str, platform: str) -> str | None:
    """How often the test `path::function` runs on a platform; None where it never does."""
    path = name.partition("::")[0]
    marks = _marks(name)
    if platform not in PLATFORMS.get(Path(path).parts[1], ()) or "soak" in marks:
        return None
    if "gpu" in marks:
        return ON_A_GPU
    if platform == "embedded" or "core" in marks or "conformance" in Path(path).parts:
        return EVERY_CHANGE
    return FULL_TIER


def _marks(name: str) -> frozenset[str]:
    """The markers of a test and of its module."""
    found = _found(name)
    assert found is not None, f"there is no test {name}"
    module, function = found
    own = (mark for decorator in function.decorator_list for mark in _named(decorator))
    shared = (mark for node in module.body if _is_pytestmark(node) for mark in _named(node))
    return frozenset((*own, *shared))


def _found(name: str) -> tuple[ast.Module, Function] | None:
    """A test's module and function; parameters in brackets are not looked at."""
    path, _, function = name.partition("::")
    if not (ROOT / path).is_file():
        return None
    module = _parsed(ROOT / path)
    wanted = function.partition("[")[0]
    found = (node for node in module.body if isinstance(node, Function) and node.name == wanted)
    return next(((module, node) for node in found), None)


@functools.cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _is_pytestmark(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)


def _named(node: ast.AST) -> Iterator[str]:
    """Every NAME of `pytest.mark.NAME` below a node."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Attribute) and each.value.attr == "mark":
            yield each.attr
