"""The string formats Kubernetes checks in custom resources; a format that is not here is not checked.

Each check is a function from text to bool. Names are looked up without their dashes, as `date-time` and `datetime` are
one format. All expressions are linear: none can be made to backtrack.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import re
from collections.abc import Callable
from urllib.parse import urlsplit

_HEX = "[0-9a-fA-F]"
_SHORT_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_CHANNEL = r"\s*(25[0-5]|2[0-4]\d|1\d\d?|[1-9]\d?|0)\s*"
_HOST_LABEL = r"[^\W_]([^\W_]|-){0,61}[^\W_]|[^\W_]"


def _matches(pattern: str, *, longest: int | None = None) -> Callable[[str], bool]:
    compiled = re.compile(pattern)

    def check(text: str) -> bool:
        return (longest is None or len(text) <= longest) and compiled.fullmatch(text) is not None

    return check


def _uuid(version: str = f"{_HEX}{{4}}", variant: str = f"{_HEX}{{4}}") -> Callable[[str], bool]:
    return _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{version}-?{variant}-?{_HEX}{{12}}")


def is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def is_date(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(z|[+-]\d{2}:\d{2})", re.ASCII)


def is_date_time(text: str) -> bool:
    """RFC 3339, such as `2026-11-15T09:46:56.123Z`."""
    day, _, time = text.lower().partition("t")
    return is_date(day) and _TIME.fullmatch(time) is not None


_GO_PIECE = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WORDED_DURATION = re.compile(r"(?<!\d)\d+\s*([A-Za-zµ]+)", re.ASCII)
"""Begins where digits do: a search from every digit of a long number would be quadratic."""
_UNITS = {"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"}
_UNIT_STEMS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")


def is_duration(text: str) -> bool:
    """Go's `1h30m`, or Scala's `2 days`."""
    if _is_go_duration(text):
        return True
    units = [unit.lower() for unit in _WORDED_DURATION.findall(text)]
    return any(unit in _UNITS or unit.startswith(_UNIT_STEMS) for unit in units)


def _is_go_duration(text: str) -> bool:
    """Piece by piece: one expression for all of them would keep hundreds of bytes for each."""
    start = at = 1 if text.startswith(("+", "-")) else 0
    while (piece := _GO_PIECE.match(text, at)) is not None:
        at = piece.end()
    return text[start:] == "0" or start < at == len(text)


def _address(text: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(text).version == version and "%" not in text
    except ValueError:
        return False


def _is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text and text.rpartition("/")[2].isdecimal()


def _is_hostname(text: str) -> bool:
    labels = text.split(".")
    if len(text) > 255 or not all(re.fullmatch(_HOST_LABEL, label) for label in labels):
        return False
    return len(labels) == 1 or re.fullmatch(r"[^\W\d_]{2,63}", labels[-1]) is not None


def _is_uri(text: str) -> bool:
    """As Go's ParseRequestURI: absolute, or an absolute path."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises when it is not a number
    except ValueError:
        return False
    return (bool(parts.scheme) or text.startswith("/")) and not re.search(r"[\x00-\x20\x7f]", text)


def _is_email(text: str) -> bool:
    """`a@b` alone or as `Name <a@b>`."""
    named = re.fullmatch(r"[^<>]*<([^<>]+)>", text)
    local, at, domain = (named.group(1) if named else text).rpartition("@")
    return bool(local and at and domain) and not re.search(r"[\s<>@]", local + domain)


def _digits(text: str, dropped: str) -> str:
    return re.sub(dropped, "", text)


def _is_isbn10(text: str) -> bool:
    digits = _digits(text, r"[\s-]+")
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    return sum(place * (10 if digit == "X" else int(digit)) for place, digit in enumerate(digits, 1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = _digits(text, r"[\s-]+")
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10 == 0


_CARD = re.compile(
    r"4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(0[0-5]|[68][0-9])[0-9]{11}"
    r"|(2131|1800|35[0-9]{3})[0-9]{11}"
)


def _is_credit_card(text: str) -> bool:
    digits = _digits(text, "[^0-9]+")
    if not _CARD.fullmatch(digits):
        return False
    doubled = [int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits))]
    return sum(value // 10 + value % 10 for value in doubled) % 10 == 0


_PAIRS = f"{_HEX}{{2}}"
_MAC = "|".join(
    f"{_PAIRS}({separator}{_PAIRS}){{{count - 1}}}" for separator in (":", "-") for count in (6, 8, 20)
) + "".join(rf"|{_HEX}{{4}}(\.{_HEX}{{4}}){{{count - 1}}}" for count in (3, 4, 10))

_CHECKS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(f"{_HEX}{{24}}"),
    "byte": is_base64,
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": is_date,
    "datetime": is_date_time,
    "duration": is_duration,
    "email": _is_email,
    "hexcolor": _matches(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": _is_hostname,
    "ipv4": lambda text: _address(text, 4),
    "ipv6": lambda text: _address(text, 6),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": _matches(rf"{_SHORT_NAME}(\.{_SHORT_NAME})*", longest=253),
    "k8sshortname": _matches(_SHORT_NAME, longest=63),
    "mac": _matches(_MAC),
    "password": lambda text: True,
    "rgbcolor": _matches(rf"rgb\({_CHANNEL},{_CHANNEL},{_CHANNEL}\)"),
    "ssn": lambda text: len(text) == 11 and re.fullmatch(r"\d{3}[- ]?\d{2}[- ]?\d{4}", text) is not None,
    "uri": _is_uri,
    "uuid": _uuid(),
    "uuid3": _uuid(f"3{_HEX}{{3}}"),
    "uuid4": _uuid(f"4{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "uuid5": _uuid(f"5{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
}


def format_check(name: str) -> Callable[[str], bool] | None:
    """The check for a format of a string, or None where Kubernetes ignores the format."""
    return _CHECKS.get(name.replace("-", ""))
