"""The one error of this package."""

from __future__ import annotations


class InvalidPipeline(ValueError):
    """A pipeline that cannot be carried out: `path` is the field to mend, `message` says why and what to do."""

    reason = "InvalidPipeline"

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message
