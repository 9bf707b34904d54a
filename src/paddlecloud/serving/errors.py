"""Why a request is refused or a model not served, in the words and the status code its sender gets."""

from __future__ import annotations


class ServingError(Exception):
    """Everything this server refuses knowingly; anything else is a bug and answers 500."""

    status = 500


class BadInput(ServingError):
    """The request does not fit the model; sending it again changes nothing."""

    status = 400


class NotFound(ServingError):
    status = 404


class TooLarge(ServingError):
    status = 413


class UnknownEncoding(ServingError):
    status = 415


class TooSlow(ServingError):
    status = 408


class Overloaded(ServingError):
    """More is waiting than will be answered in time; `retry_after` says when to come again."""

    status = 429

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotReady(ServingError):
    status = 503


class InferenceFailed(ServingError):
    """The model itself failed on input that fits its declaration."""


class ModelError(ServingError):
    """The model cannot be served: absent, damaged, of an unknown form, too large for the machine."""
