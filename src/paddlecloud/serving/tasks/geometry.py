"""Connected pixels and the smallest rectangle around points, with numpy alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np


class Rectangle(NamedTuple):
    """Its middle, the direction of its first side, and half of the length of both sides."""

    middle: Any
    direction: Any
    half: tuple[float, float]

    def corners(self) -> Any:
        """Four points `[x, y]`: first the upper left one, then clockwise as pictures are seen."""
        across = np.array([-self.direction[1], self.direction[0]])
        first, second = self.direction * self.half[0], across * self.half[1]
        points = np.array([-first - second, first - second, first + second, -first + second]) + self.middle
        by_x = points[np.argsort(points[:, 0], kind="stable")]
        left, right = by_x[:2][np.argsort(by_x[:2, 1])], by_x[2:][np.argsort(by_x[2:, 1])]
        return np.array([left[0], right[0], right[1], left[1]])

    def grown(self, distance: float) -> Rectangle:
        return self._replace(half=(self.half[0] + distance, self.half[1] + distance))

    @property
    def sides(self) -> tuple[float, float]:
        return 2 * self.half[0], 2 * self.half[1]

    def holds(self, points: Any) -> Any:
        """Which of the points lie in it."""
        away = points - self.middle
        across = np.array([-self.direction[1], self.direction[0]])
        return (abs(away @ self.direction) <= self.half[0]) & (abs(away @ across) <= self.half[1])


def components(mask: Any) -> Iterator[Any]:
    """Points `[x, y]` of each set of pixels that touch, also at corners: the first and the last of every run of a row.
    They are as good as all of them for what surrounds the set. Rows are joined by union and find."""
    runs = _runs(mask)
    parents = list(range(len(runs)))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    above, at = 0, 0
    for number, (y, start, end) in enumerate(runs):
        if number and runs[number - 1][0] != y:
            above, at = at, number  # the runs of the row before begin there
        while above < at and (runs[above][0] < y - 1 or runs[above][2] < start - 1):
            above += 1
        beside = above
        while beside < at and runs[beside][1] <= end + 1:
            parents[root(beside)] = root(number)
            beside += 1
    found: dict[int, list[tuple[int, int]]] = {}
    for number, (y, start, end) in enumerate(runs):
        found.setdefault(root(number), []).extend(((start, y), (end, y)))
    for points in found.values():
        yield np.array(points, dtype="float64")


def _runs(mask: Any) -> list[tuple[int, int, int]]:
    """Row, first and last column of all pixels that are set and lie side by side."""
    padded = np.zeros((mask.shape[0], mask.shape[1] + 2), dtype="int8")
    padded[:, 1:-1] = mask
    change = np.diff(padded, axis=1)
    rows, starts = np.nonzero(change == 1)
    _, ends = np.nonzero(change == -1)
    return list(zip(rows.tolist(), starts.tolist(), (ends - 1).tolist(), strict=True))


def smallest_rectangle(points: Any) -> Rectangle:
    """One of its sides lies on a side of the convex hull."""
    hull = _hull(points)
    edges = np.roll(hull, -1, axis=0) - hull
    lengths = np.hypot(edges[:, 0], edges[:, 1])
    directions = edges[lengths > 0] / lengths[lengths > 0, None]
    if not len(directions):  # one point
        directions = np.array([[1.0, 0.0]])
    best: Rectangle | None = None
    for direction in directions:
        axes = np.array([direction, [-direction[1], direction[0]]])
        turned = hull @ axes.T
        low, high = turned.min(0), turned.max(0)
        half = (high - low) / 2
        if best is None or half[0] * half[1] < best.half[0] * best.half[1]:
            best = Rectangle(((low + high) / 2) @ axes, direction, (float(half[0]), float(half[1])))
    assert best is not None
    return best


def _hull(points: Any) -> Any:
    """Andrew's monotone chain."""
    ordered = [tuple(point) for point in np.unique(points, axis=0).tolist()]
    if len(ordered) < 3:
        return np.array(ordered)
    return np.array(_half(ordered) + _half(ordered[::-1]))


def _half(points: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    kept: list[tuple[float, ...]] = []
    for point in points:
        while len(kept) > 1 and _turn(kept[-2], kept[-1], point) <= 0:
            kept.pop()
        kept.append(point)
    return kept[:-1]


def _turn(a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
