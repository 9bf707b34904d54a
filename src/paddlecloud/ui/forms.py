"""Fields of forms, as browsers send those of our pages: urlencoded, few and small. Pure."""

from __future__ import annotations

from urllib.parse import parse_qsl

MOST_BYTES = 64 * 1024
MOST_FIELDS = 32


class BadForm(ValueError):
    """The body is no form of our pages."""


def fields_of(body: bytes) -> dict[str, str]:
    """The last value of each name."""
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError as error:  # not UTF-8, or too many fields
        raise BadForm(str(error)) from error
