"""Why a container cannot be started as it is written: the message of CreateContainerConfigError."""

from __future__ import annotations


class ContainerConfigError(Exception):
    """What the container refers to is missing or wrong."""


class MissingObject(ContainerConfigError):
    """A ConfigMap or Secret, or a key of one, is not there yet: only a change of one can help."""
