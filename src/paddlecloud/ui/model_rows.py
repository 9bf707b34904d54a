"""Models and their versions as rows: what their pages show and filter by. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from paddlecloud.api.model.reference import LATEST
from paddlecloud.cli.objects.why import OK, why
from paddlecloud.kube.resource import Object
from paddlecloud.ui.object_lists import searched
from paddlecloud.ui.verdicts import phase_of

KINDS_OF_STATE = ("Lost", "Terminating")


class VersionRow(NamedTuple):
    namespace: str
    name: str
    """Of the object: MODEL.VERSION."""
    model: str
    version: str
    created: str
    by: str
    size: int
    files: int
    framework: str
    description: str
    metrics: Mapping[str, Any]
    phase: str
    message: str
    text: str


class ModelRow(NamedTuple):
    namespace: str
    name: str
    phase: str
    created: str
    description: str
    aliases: tuple[tuple[str, str], ...]
    """Each with its version; `latest` comes last."""
    why: str
    text: str


class ListedModel(NamedTuple):
    """A model with what its versions add to it."""

    row: ModelRow
    versions: int
    size: int
    pushed: str
    """When its newest version was."""

    @property
    def namespace(self) -> str:
        return self.row.namespace

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def phase(self) -> str:
        return self.row.phase

    @property
    def text(self) -> str:
        return self.row.text


def row_of(model: Object) -> ModelRow:
    meta, spec = model["metadata"], model.get("spec") or {}
    verdict = why(model, now=0.0)
    aliases = sorted((spec.get("aliases") or {}).items(), key=lambda each: (each[0] == LATEST, each[0]))
    description = str(spec.get("description") or "")
    return ModelRow(
        namespace=str(meta.get("namespace", "")),
        name=str(meta["name"]),
        phase=phase_of(verdict),
        created=str(meta.get("creationTimestamp") or ""),
        description=description,
        aliases=tuple((str(alias), str(to)) for alias, to in aliases),
        why="" if verdict.state == OK else verdict.text,
        text=searched(model, description, verdict.text, *(f"{alias}={to}" for alias, to in aliases)),
    )


def version_row(version: Object) -> VersionRow:
    meta, spec, status = version["metadata"], version.get("spec") or {}, version.get("status") or {}
    phase = str(status.get("phase") or "")
    origin = (f"{name}={value}" for name, value in (spec.get("origin") or {}).items())
    message = str(status.get("message") or "")
    return VersionRow(
        namespace=str(meta.get("namespace", "")),
        name=str(meta["name"]),
        model=str(spec.get("model") or ""),
        version=str(spec.get("version") or ""),
        created=str(spec.get("createdAt") or meta.get("creationTimestamp") or ""),
        by=str(spec.get("createdBy") or ""),
        size=int(spec.get("size") or 0),
        files=int(spec.get("files") or 0),
        framework=str(spec.get("framework") or ""),
        description=str(spec.get("description") or ""),
        metrics=spec.get("metrics") or {},
        phase=phase if phase in KINDS_OF_STATE else "Ready",
        message=message,
        text=searched(version, spec.get("description") or "", phase, message, *origin),
    )


def with_versions(models: Iterable[ModelRow], versions: Iterable[VersionRow]) -> list[ListedModel]:
    counts: dict[tuple[str, str], tuple[int, int, str]] = {}
    for one in versions:
        count, size, pushed = counts.get((one.namespace, one.model), (0, 0, ""))
        counts[one.namespace, one.model] = count + 1, size + one.size, max(pushed, one.created)
    return [ListedModel(row, *counts.get((row.namespace, row.name), (0, 0, row.created))) for row in models]


def newest_first(row: VersionRow) -> tuple[str, int, str]:
    """Of versions of one second the higher number is the newer one."""
    number = int(row.version) if row.version.isdecimal() and len(row.version) < 19 else -1
    return row.created, number, row.version
