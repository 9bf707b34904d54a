"""What an image is on this machine: an environment for processes, not a separate file system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class ImageProgram(NamedTuple):
    """What a container of an image runs where its pod has no command; arguments of the pod take the place of `cmd`."""

    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything a container takes from its image. The host's root file system lies beneath it."""

    image_id: str
    """`sha256:…` of what the recipe gives: equal ids, equal environments."""
    path: tuple[str, ...] = ()
    """Folders searched for programs before the host's."""
    env: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    workdir: str = ""
    user: str = ""
    root: Path | None = None
    """A tree of files that appear in the container at their paths under it; copied, so that pods may write there."""
    readonly: tuple[Path, ...] = ()
    """Trees shared by all pods of the image, at their own paths, protected from them."""
    library: Path | None = None
    """The parts of this project on its PYTHONPATH, also in `readonly`; None where the recipe asks for none."""
    preload: tuple[str, ...] = ()
    """Modules that a warm parent of this image keeps imported."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the image in the form that container engines read."""
    stands_for: str = ""
    """What is in it and what its name promises, where the two differ; see `stand_in`."""
