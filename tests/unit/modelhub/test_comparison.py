"""What differs between two versions."""

from __future__ import annotations

from typing import Any

from paddlecloud.modelhub.comparison import FactChange, FileChange, compare
from paddlecloud.modelhub.manifest import FORMAT, File, Manifest


def manifest(files: dict[str, tuple[str, int]], **facts: Any) -> Manifest:
    entries = tuple(File(path, digest, size, "copy") for path, (digest, size) in files.items())
    return Manifest(
        format=FORMAT, namespace="a", model="ocr", version="1", digest="", size=0, files=entries, **facts
    )  # fmt: skip


def test_files_metrics_and_origin_that_differ_are_listed() -> None:
    before = manifest(
        {"net": ("aa", 10), "labels": ("bb", 2), "old": ("cc", 1)},
        metrics={"accuracy": 0.9, "loss": 0.5},
        origin={"job": "one", "image": "paddle:3"},
    )
    after = manifest(
        {"net": ("dd", 12), "labels": ("bb", 2), "new": ("ee", 3)},
        metrics={"accuracy": 0.95},
        origin={"job": "two", "image": "paddle:3", "commit": "ff"},
    )
    found = compare(before, after)
    assert found.files == (
        FileChange("net", "changed", 10, 12),
        FileChange("new", "added", None, 3),
        FileChange("old", "removed", 1, None),
    )
    assert found.unchanged == 1
    assert [(one.name, one.before, one.after) for one in found.metrics] == [
        ("accuracy", 0.9, 0.95),
        ("loss", 0.5, None),
    ]
    assert round(found.metrics[0].difference or 0, 6) == 0.05
    assert found.metrics[1].difference is None
    assert found.facts == (FactChange("job", "one", "two"), FactChange("commit", None, "ff"))


def test_a_version_does_not_differ_from_itself() -> None:
    one = manifest({"net": ("aa", 10)}, metrics={"loss": 1.0}, origin={"job": "one"})
    found = compare(one, one)
    assert (found.files, found.unchanged, found.facts) == ((), 1, ())
    assert found.report()["metrics"] == [{"name": "loss", "before": 1.0, "after": 1.0, "difference": 0.0}]
