"""A folder that a command fills: a new one, or one that is empty. What somebody has there is never written over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paddlecloud.cli.failures import CONFLICT, ERROR, CliError
from paddlecloud.kube.wording import cause_of


@contextmanager
def create(folder: Path, command: str) -> Iterator[None]:
    """While it is open the folder is filled. `command` is what was called, without the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = next(folder.iterdir(), None)
        if found is None:
            yield
    except OSError as error:
        raise CliError(
            f"cannot write to {folder}", why=cause_of(error), next=f"{command} OTHER-FOLDER", exit_code=ERROR
        ) from error
    if found is not None:
        raise CliError(
            f"{folder} is not empty",
            why=f"it has {found.name}, and nothing is written over",
            next=f"{command} OTHER-FOLDER",
            exit_code=CONFLICT,
        )
