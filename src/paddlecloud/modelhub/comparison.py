"""What differs between two versions: files, metrics, and where they came from. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlecloud.modelhub.manifest import Manifest
from paddlecloud.modelhub.signature import shown


class FileChange(NamedTuple):
    path: str
    change: str
    """`added`, `removed` or `changed`."""
    before: int | None
    """Bytes; None for a file that was not there."""
    after: int | None


class MetricChange(NamedTuple):
    name: str
    before: float | None
    after: float | None

    @property
    def difference(self) -> float | None:
        return self.after - self.before if self.before is not None and self.after is not None else None


class FactChange(NamedTuple):
    name: str
    before: str | None
    after: str | None


class Comparison(NamedTuple):
    files: tuple[FileChange, ...]
    unchanged: int
    """Files that both have with the same bytes."""
    metrics: tuple[MetricChange, ...]
    """Every metric that one of them has, equal ones included."""
    facts: tuple[FactChange, ...]
    """Entries of `origin` that differ, and `framework`, `inputs`, `outputs` and `description`."""

    def report(self) -> dict[str, Any]:
        return {
            "files": [one._asdict() for one in self.files],
            "unchangedFiles": self.unchanged,
            "metrics": [{**one._asdict(), "difference": one.difference} for one in self.metrics],
            "origin": [one._asdict() for one in self.facts],
        }


def compare(before: Manifest, after: Manifest) -> Comparison:
    old, new = ({file.path: file for file in one.files} for one in (before, after))
    files = []
    for path in sorted(old.keys() | new.keys()):
        was, now = old.get(path), new.get(path)
        if was is not None and now is not None and was.sha256 == now.sha256:
            continue
        change = "added" if was is None else "removed" if now is None else "changed"
        files.append(FileChange(path, change, was.size if was else None, now.size if now else None))
    same = sum(path in new and new[path].sha256 == file.sha256 for path, file in old.items())
    names = sorted(before.metrics.keys() | after.metrics.keys())
    metrics = tuple(MetricChange(name, before.metrics.get(name), after.metrics.get(name)) for name in names)
    return Comparison(tuple(files), same, metrics, tuple(_facts(before, after)))


def _facts(before: Manifest, after: Manifest) -> list[FactChange]:
    first, second = (
        {"framework": one.framework, **_tensors(one), "description": one.description, **one.origin}
        for one in (before, after)
    )
    changed = [name for name in dict.fromkeys([*first, *second]) if first.get(name) != second.get(name)]
    return [FactChange(name, first.get(name) or None, second.get(name) or None) for name in changed]


def _tensors(one: Manifest) -> dict[str, str]:
    found = one.signature
    return {"inputs": shown(found.inputs), "outputs": shown(found.outputs)} if found else {}
