"""What of a program's output, or of a platform's message, is said in one sentence. Pure."""

from __future__ import annotations

import re

SENTENCE = 200
"""Characters of a line of output."""

LONG_SENTENCE = 500
"""Characters of a platform's message, which ends with the command that helps."""

_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)(:|$)")
"""How the last line of a Python traceback begins."""


def verdict_of(output: str) -> str:
    """The line that says what went wrong: the last, unless an exception's stands before what came out of a buffer."""
    lines = output.strip().splitlines()
    return first_words(raised_in(output) or (lines or [""])[-1], SENTENCE)


def raised_in(output: str) -> str:
    """The line of the last exception, empty where there is none. Its text may go on for many lines."""
    return next((line for line in reversed(output.splitlines()) if _RAISED.match(line)), "")


def after_the_exception(output: str, end: str) -> str:
    """`end`, what was kept of an output, begun with the line of the exception where that stands before the cut.

    What is put before it is taken off the rest, so that the text is no longer than it was.
    """
    raised = raised_in(output)
    if not raised or raised_in(end) or end.strip() in raised:
        return end
    line = first_words(raised, SENTENCE)
    rest = end[len(line) + 1 :]
    return f"{line}\n{rest.partition(chr(10))[2] or rest}"


def first_and_last(message: str) -> str:
    """What is missing, and the command at the end that would mend it; a build's output lies between them."""
    lines = message.strip().splitlines() or [""]
    if len(lines) == 1:
        return first_words(lines[0], LONG_SENTENCE)
    return f"{first_words(lines[0], SENTENCE)}; {first_words(lines[-1], SENTENCE)}"


def first_words(text: str, limit: int) -> str:
    """The beginning of a line, cut between words."""
    if len(text) <= limit:
        return text
    kept = text[:limit].rpartition(" ")[0] or text[:limit]
    return f"{kept.rstrip()} …"
