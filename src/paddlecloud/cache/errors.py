"""How work on a cache server can end other than well. Texts are for people and never hold credentials."""

from __future__ import annotations


class BadOptions(Exception):
    """The order itself is wrong; the text names the option and what is allowed."""


class WorkFailed(Exception):
    """The work could not be done or not all of it; the text says what is missing and what would help."""


class Cancelled(Exception):
    """Somebody asked for the work to end."""


class Conflict(Exception):
    """The id is taken by a job with other options."""
