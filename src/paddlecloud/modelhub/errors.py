"""What can go wrong with models, each with a reason that a program can match; stores raise `StorageError`s."""

from __future__ import annotations

from typing import ClassVar


class HubError(Exception):
    """The base of all errors here."""

    reason: ClassVar[str] = "ModelError"


class UnknownVersion(HubError):
    """There is no such model, version or alias."""

    reason = "NotFound"


class VersionExists(HubError):
    """The version exists with other content: versions never change."""

    reason = "AlreadyExists"


class Refused(HubError):
    """What was given cannot be a model, or a folder that is already there is not what was asked for."""

    reason = "Invalid"


class Damaged(HubError):
    """The store does not hold what a manifest says."""

    reason = "Damaged"
