"""Exceptions that odd values of a tenant's object lead to, and the log that shows which of them are bugs of ours.

Users who may write a workflow may write its status too, so any field may have any type. Such an object is refused or
ended with the reason; an exception would be retried for ever. Argo ends a workflow as well when its pass panics
(operate() in workflow/controller/operator.go recovers and marks it with Error). A mistake in this package raises the
same exceptions, so each line of code that raises one is logged, once: tenants cannot fill the log with it.
"""

from __future__ import annotations

import logging
import traceback

log = logging.getLogger(__name__)

UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Without AssertionError: an assertion that fails is a bug, whatever the object has."""

_FRAMES = 6
_LONGEST = 300
"""Characters of the exception's own text, which a tenant may choose."""


class UnreadableLog:
    def __init__(self) -> None:
        self._seen: set[tuple[str, int | None, str]] = set()

    def report(self, what: str, why: BaseException) -> None:
        """Once for each line of code that raises it. On one line: a tenant's text must not look like other lines."""
        frames = traceback.extract_tb(why.__traceback__)[-_FRAMES:]
        at = (frames[-1].filename, frames[-1].lineno, type(why).__name__) if frames else ("", None, type(why).__name__)
        if at in self._seen:
            return
        self._seen.add(at)
        path = " > ".join(f"{each.filename.rpartition('/')[2]}:{each.lineno} {each.name}" for each in frames)
        text = repr(str(why)[:_LONGEST])
        log.warning("%s cannot be read (%s: %s) at %s; not logged again for this line", what, at[2], text, path)
