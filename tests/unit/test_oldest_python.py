"""What the oldest Python that we promise refuses, and the one that tests run on does not."""

from __future__ import annotations

import ast
from pathlib import Path

import paddlecloud

SOURCE = Path(paddlecloud.__file__).parent


def test_no_named_tuple_has_another_base() -> None:
    """Python 3.10: "Multiple inheritance with NamedTuple is not supported", when the module is imported."""
    refused = [
        f"{file.relative_to(SOURCE)}:{node.lineno}"
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and len(node.bases) > 1
        if any(isinstance(base, ast.Name) and base.id == "NamedTuple" for base in node.bases)
    ]
    assert refused == []
