"""Why a volume is not there."""

from __future__ import annotations


class VolumeError(Exception):
    """A volume cannot be provided now; the pod waits, shows the text as a FailedMount, and tries again."""


class ClaimNotBound(VolumeError):
    """There is nothing to mount yet: on a cluster the scheduler would hold the pod back."""
