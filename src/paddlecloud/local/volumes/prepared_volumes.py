"""Volumes as containers meet them: a path of the machine, and how it is mounted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume of the pod on this machine."""

    path: str
    readonly: bool = False
    optional: bool = False
    everywhere: str = ""
    """Where every container of the pod has it without asking; empty for ordinary volumes."""


@dataclass(frozen=True, slots=True)
class PreparedVolumes:
    volumes: Mapping[str, Volume] = field(default_factory=dict)
    tmpfs: tuple[tuple[str, int], ...] = ()
    """Directories over which the shim mounts a tmpfs, with their size limit."""
