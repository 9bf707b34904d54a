"""Why a container cannot be started as it is written: the message of CreateContainerConfigError."""

from __future__ import annotations


class ConfigError(Exception):
    """What the container refers to is missing or wrong."""


class MissingObject(ConfigError):
    """A ConfigMap or Secret, or a key of one, is not there yet: only a change of one can help."""
