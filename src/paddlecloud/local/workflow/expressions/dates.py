"""Times in the layouts of Go, for `sprig.date`: `2006-01-02` stands for year, month and day. Pure, in UTC."""

from __future__ import annotations

import datetime
import re

from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.expressions.values import Value

_PARTS = {
    "January": "%B", "Jan": "%b", "Monday": "%A", "Mon": "%a", "MST": "UTC", "2006": "%Y", "Z07:00": "Z",
    "-07:00": "+00:00", "-0700": "+0000", "002": "%j", "01": "%m", "02": "%d", "03": "%I", "04": "%M", "05": "%S",
    "06": "%y", "15": "%H", "PM": "%p",
}  # fmt: skip
_SHORT = {"1": "%m", "_2": "%e", "2": "%d", "3": "%I", "4": "%M", "5": "%S"}
"""Without a leading zero."""
_LAYOUT = re.compile("|".join((*_PARTS, *_SHORT)))


def date(layout: Value, value: Value) -> str:
    """Of a text, of seconds since 1970, or of `workflow.creationTimestamp`, which is a map to expressions: of its
    formats. Argo shows the present time instead, since none of them is a time to sprig; here the clock is not served.
    """
    if isinstance(value, dict):
        value = value.get("RFC3339")
    try:
        seconds = parse_rfc3339(value) if isinstance(value, str) else float(value)
        moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    except (OverflowError, TypeError, ValueError, OSError):
        raise ExpressionError(f"sprig.date needs a time, not {str(value)[:60]!r}") from None

    def part(match: re.Match[str]) -> str:
        short = _SHORT.get(match[0])
        return moment.strftime(short).lstrip("0") or "0" if short else moment.strftime(_PARTS[match[0]])

    return _LAYOUT.sub(part, str(layout))
