"""What can go wrong between us and a store, each with a reason that a program can match."""

from __future__ import annotations

from typing import ClassVar


class StorageError(Exception):
    """The base of all errors here. Texts never contain credentials."""

    reason: ClassVar[str] = "StorageError"


class BadUri(StorageError):
    """The address itself is wrong; trying again is of no use."""

    reason = "BadUri"


class Unsupported(StorageError):
    """Nothing on this machine can read that store; the text says what to install."""

    reason = "Unsupported"


class Denied(StorageError):
    """The store refused the credentials, or asks for some."""

    reason = "AccessDenied"


class Missing(StorageError):
    """The bucket or the object is not there."""

    reason = "NotFound"


class Unreachable(StorageError):
    """No answer, or an answer that says to try again later."""

    reason = "Unreachable"


class NoSpace(StorageError):
    """The disk, or what the user may use of it, is full."""

    reason = "NoSpace"
