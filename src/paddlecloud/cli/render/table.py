"""Columns of text, aligned the way kubectl aligns them. Knows nothing of objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GAP = "   "


class Printer:
    """Renders rows that arrive bit by bit (a watch): the header comes once, and columns never become narrower."""

    def __init__(self, *, headers: bool = True) -> None:
        self._headers = headers
        self._widths: list[int] = []

    def render(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
        """One line per row, each ending in a newline; the last column is not padded."""
        lines = [[_cell(value) for value in row] for row in rows]
        if self._headers:
            lines.insert(0, [column.upper() for column in columns])
            self._headers = False
        if len(self._widths) != len(columns):
            self._widths = [0] * len(columns)
        for line in lines:
            self._widths = [max(size, width(cell)) for size, cell in zip(self._widths, line, strict=True)]
        text = []
        for line in lines:
            padded = [cell + " " * (size - width(cell)) for cell, size in zip(line, self._widths, strict=True)]
            text.append(GAP.join(padded).rstrip() + "\n")
        return "".join(text)


def render(columns: Sequence[str], rows: Iterable[Sequence[object]], *, headers: bool = True) -> str:
    return Printer(headers=headers).render(columns, rows)


def width(text: str) -> int:
    """Columns on a terminal: East Asian wide characters take two."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _cell(value: object) -> str:
    """Cells stay on their line; a control character must not move the reader's cursor."""
    if value is None:
        return "<none>"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)
