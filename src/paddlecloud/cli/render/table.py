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
        lines: list[Sequence[object]] = [[column.upper() for column in columns]] if self._headers else []
        self._headers = False
        lines.extend(rows)
        if not lines:
            return ""
        if len(self._widths) != len(columns):
            self._widths = [0] * len(columns)
        padded = []
        for number, values in enumerate(zip(*lines, strict=True)):
            cells, self._widths[number] = _padded(values, self._widths[number])
            padded.append(cells)
        return "".join([line.rstrip() + "\n" for line in map(GAP.join, zip(*padded, strict=True))])


def render(columns: Sequence[str], rows: Iterable[Sequence[object]], *, headers: bool = True) -> str:
    return Printer(headers=headers).render(columns, rows)


def _padded(values: Sequence[object], least: int) -> tuple[list[str], int]:
    """The cells of a column, all of one width, and that width. Whole columns at a time: tables have 10,000 rows."""
    cells = [value if type(value) is str and value.isprintable() else _cell(value) for value in values]
    if all(map(str.isascii, cells)):
        size = max(least, *map(len, cells), 0)
        return [cell.ljust(size) for cell in cells], size
    size = max(least, *map(width, cells), 0)
    return [cell + " " * (size - width(cell)) for cell in cells], size


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
