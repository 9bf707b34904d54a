"""What browsers and strangers send to the dashboard: forms, searches, addresses of pages and languages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from paddlecloud.ui import forms, listing, words
from paddlecloud.ui.responses import Refused
from paddlecloud.ui.server import page_of
from unit.budgets.inputs import Row, times

HEADERS = 8 * 1024
"""More of a request line or a header is refused before the server sees it."""


def read_form(body: bytes) -> None:
    with contextlib.suppress(forms.BadForm):
        forms.fields_of(body)


def read_path(path: str) -> None:
    with contextlib.suppress(Refused):
        page_of(path)


def ui() -> Iterator[Row]:
    for name, part in {"fields": b"a&", "escapes": b"%41", "one field": b"a", "broken": b"%&="}.items():
        yield Row("ui: POST /", name, times(part), read_form, forms.MOST_BYTES)
    yield Row("ui: search", "words", times("a "), lambda text: listing.words_of({"q": text}), HEADERS)
    for name, text in {"slashes": "/", "names": "/jobs", "letters": "a"}.items():
        yield Row("ui: path of a page", name, times(text, "/jobs/"), read_path, HEADERS)
    yield Row("ui: Accept-Language", "names", times("fr,"), words.preferred, HEADERS)
