"""What notebooks show: small tables without scripts or outside styles. Everything in them is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

_COLOURS = {
    "Running": "#1a7f37",
    "Completed": "#0969da",
    "Succeeded": "#0969da",
    "Failed": "#cf222e",
    "Pending": "#9a6700",
    "Restarting": "#9a6700",
}


def card(title: str, facts: Mapping[str, object]) -> str:
    rows = "".join(
        f'<tr><th style="text-align:left">{_text(name)}</th><td style="text-align:left">{_cell(name, value)}</td></tr>'
        for name, value in facts.items()
    )
    return f"<div><b>{_text(title)}</b><table>{rows}</table></div>"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f'<th style="text-align:left">{_text(column)}</th>' for column in columns)
    body = "".join(f"<tr>{_row(columns, row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(columns: Sequence[str], row: Sequence[object]) -> str:
    cells = (_cell(column, value) for column, value in zip(columns, row, strict=True))
    return "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells)


def _cell(name: str, value: object) -> str:
    text = _text(value)
    colour = _COLOURS.get(str(value)) if name == "Phase" else None
    return f'<span style="color:{colour}">{text}</span>' if colour else text


def _text(value: object) -> str:
    return "" if value is None else html.escape(str(value))
