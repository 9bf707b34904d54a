"""What ends a step: sentences for its log, without a traceback."""

from __future__ import annotations


class StepFailed(Exception):
    """An input that cannot be carried out, or an object that failed. The message says what to do where it can."""
