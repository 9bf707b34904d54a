"""The public face: cheap to import, and the same whether blocking or not."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import paddlecloud
from paddlecloud.sdk import core, handles, jobs, models, sync, sync_handles

PAIRS = [
    (core.AsyncClient, sync.Client),
    (jobs.AsyncJobs, sync.Jobs),
    (models.AsyncModels, sync.Models),
    (handles.AsyncHandle, sync_handles.Handle),
    (handles.AsyncJob, sync_handles.Job),
    (handles.AsyncService, sync_handles.Service),
]
INTERNAL = {"exec"}
"""Of the asynchronous client alone: what its handles use."""


def public(kind: type[Any]) -> dict[str, Any]:
    return {
        name: member
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and member.__module__.startswith("paddlecloud.sdk")
    }


@pytest.mark.parametrize(("asynchronous", "blocking"), PAIRS, ids=lambda kind: kind.__name__)
def test_both_faces_offer_the_same(asynchronous: type[Any], blocking: type[Any]) -> None:
    ours, theirs = public(asynchronous), public(blocking)
    skipped = INTERNAL if asynchronous is core.AsyncClient else set()
    assert ours.keys() - skipped == theirs.keys()
    for name in theirs:
        wanted, offered = inspect.signature(ours[name]), inspect.signature(theirs[name])
        assert [str(one) for one in wanted.parameters.values()] == [str(one) for one in offered.parameters.values()]


def test_importing_the_package_loads_nothing() -> None:
    code = "import sys; before = set(sys.modules); import paddlecloud; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert set(done.stdout.split()) <= {"__future__", "paddlecloud"}


@pytest.mark.parametrize("name", [name for name in paddlecloud.__all__ if name != "__version__"])
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(paddlecloud, name).__name__.removeprefix("paddlecloud.") == name
    assert name in dir(paddlecloud)


def test_type_checkers_see_the_same_names() -> None:
    stub = Path(paddlecloud.__file__).with_suffix(".pyi").read_text()
    reported = {node.names[0].name: node.module for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)}
    assert reported == paddlecloud._PUBLIC  # type: ignore[attr-defined]


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        _ = paddlecloud.conect  # type: ignore[attr-defined]
