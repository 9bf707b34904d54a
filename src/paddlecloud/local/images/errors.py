"""What can go wrong with local images, each with the words for the pod's status and for the command line."""

from __future__ import annotations

from pathlib import Path


class ImageError(Exception):
    """Root of this package's errors."""


class RecipeError(ImageError):
    """An `image.yaml` that does not say what it must; the text names the file and the field."""


class BuildError(ImageError):
    """A build that failed; nothing of it is left but the file with all that it printed.

    `log` holds the last lines of that; `summary` is the text without them, for those who have shown them already.
    """

    def __init__(self, message: str, *, log: tuple[str, ...] = (), file: Path | None = None) -> None:
        self.message, self.log, self.file = message, log, file
        kept = (f"all that it printed: {file}",) if file else ()
        self.summary = "\n".join((message, *kept))
        super().__init__("\n".join((message, *log, *kept)))


class ImageUnavailable(ImageError):
    """No environment for an image. `reason` is the container's waiting reason; the text says what would fix it."""

    def __init__(self, message: str, *, reason: str = "ErrImagePull") -> None:
        super().__init__(message)
        self.reason = reason
