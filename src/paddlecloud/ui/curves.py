"""Curves as SVG: one plot for each tag, with a line for each source, such as a job or a run of it. Pure.

Whatever a program wrote may be in a curve: values that are no numbers break its line, and of many points each part of
the line is the mean of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from paddlecloud.ui.formatting import number

POINTS = 300
"""Of one line: in a plot of this width nobody sees more."""
MOST_PLOTS, MOST_LINES = 40, 12
COLOURS = 6
"""Classes of the style sheet, c0 to c5; lines beyond them are dashed as well."""
WIDTH, HEIGHT = 420, 150
LONGEST = 80
"""Characters of a tag or name."""


class Points(NamedTuple):
    """In the order of the steps."""

    steps: Sequence[float]
    values: Sequence[float]


class PlotLine(NamedTuple):
    name: str
    colour: str
    path: str
    last: str


class Plot(NamedTuple):
    tag: str
    lines: list[PlotLine]
    least: str
    greatest: str
    first: str
    last: str
    """The bounds, for people."""


Series = Mapping[str, Points]
"""Tag → points."""


def thinned(points: Points) -> Points:
    """The means of equal parts, of which those without a number are none."""
    count = len(points.values)
    if count <= POINTS:
        return points
    steps, values = [], []
    for part in range(POINTS):
        begin, end = part * count // POINTS, (part + 1) * count // POINTS
        finite = [value for value in points.values[begin:end] if math.isfinite(value)]
        steps.append(points.steps[end - 1])
        values.append(math.fsum(value / len(finite) for value in finite) if finite else math.nan)
    return Points(steps, values)


def plots(sources: Mapping[str, Series]) -> list[Plot]:
    """By tag, in the order of their names. A source has the same colour in all plots."""
    colours = {name: _colour(place) for place, name in enumerate(sources)}
    tags = sorted({tag for series in sources.values() for tag in series})
    made = []
    for tag in tags[:MOST_PLOTS]:
        lines = {name: thinned(series[tag]) for name, series in sources.items() if tag in series}
        made.append(_plot(tag, dict([*lines.items()][:MOST_LINES]), colours))
    return made


def _plot(tag: str, lines: Mapping[str, Points], colours: Mapping[str, str]) -> Plot:
    least, greatest = _bounds(value for points in lines.values() for value in points.values)
    first, last = _bounds(step for points in lines.values() for step in points.steps)
    drawn = [
        PlotLine(
            name[:LONGEST],
            colours[name],
            _path(points, (first, last), (least, greatest)),
            number(points.values[-1]) if points.values else "",
        )
        for name, points in lines.items()
    ]
    return Plot(tag[:LONGEST], drawn, *(number(bound) for bound in (least, greatest, first, last)))


def _bounds(values: Iterable[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else (math.nan, math.nan)


def _path(points: Points, across: tuple[float, float], up: tuple[float, float]) -> str:
    parts: list[str] = []
    pen_is_down = False
    for step, value in zip(points.steps, points.values, strict=True):
        if not (math.isfinite(step) and math.isfinite(value)):
            pen_is_down = False
            continue
        x, y = _place(step, across) * WIDTH, (1 - _place(value, up)) * HEIGHT
        parts.append(f"{'L' if pen_is_down else 'M'}{x:.1f} {y:.1f}")
        if not pen_is_down:
            parts.append("h0.01")  # a point alone is seen, too
        pen_is_down = True
    return "".join(parts)


def _place(value: float, bounds: tuple[float, float]) -> float:
    """Halves: the difference of two floats may be none."""
    span = bounds[1] / 2 - bounds[0] / 2
    return (value / 2 - bounds[0] / 2) / span if span else 0.5


def _colour(place: int) -> str:
    return f"c{place % COLOURS}" if place < COLOURS else f"c{place % COLOURS} dashed"
