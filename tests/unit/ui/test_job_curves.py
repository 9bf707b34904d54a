"""Curves: what is drawn of any values, what is kept of what jobs report, and what differs between jobs."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.ui import comparing
from paddlecloud.ui.curves import HEIGHT, POINTS, WIDTH, Points, plots, thinned
from paddlecloud.ui.job_curves import JobCurves
from paddlecloud.ui.pages.compare import MOST, wanted
from paddlecloud.ui.progress_history import MOST_POINTS, MOST_TAGS, ProgressHistory

VALUES = st.floats(allow_nan=True, allow_infinity=True)


def test_a_line_goes_from_corner_to_corner() -> None:
    (plot,) = plots({"a": {"loss": Points([0, 10], [1.0, 0.0])}})
    assert plot.lines[0].path == f"M0.0 0.0h0.01L{WIDTH}.0 {HEIGHT}.0"
    assert (plot.greatest, plot.least, plot.first, plot.last, plot.lines[0].last) == ("1", "0", "0", "10", "0")


def test_a_value_that_is_no_number_breaks_the_line() -> None:
    (plot,) = plots({"a": {"loss": Points([0, 1, 2], [1.0, math.nan, 0.0])}})
    assert plot.lines[0].path.count("M") == 2


def test_a_source_has_the_same_colour_in_all_plots() -> None:
    found = plots({"a": {"x": Points([0], [1.0])}, "b": {"x": Points([0], [1.0]), "y": Points([0], [1.0])}})
    assert [[(line.name, line.colour) for line in plot.lines] for plot in found] == [
        [("a", "c0"), ("b", "c1")],
        [("b", "c1")],
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(), VALUES), max_size=2 * POINTS))
def test_whatever_is_written_is_drawn_inside(points: list[tuple[int, float]]) -> None:
    found = plots({"a": {"loss": Points([float(step % 10**9) for step, _ in points], [value for _, value in points])}})
    numbers = re.findall(r"[ML](-?[0-9.]+) (-?[0-9.]+)", found[0].lines[0].path)
    assert len(numbers) <= POINTS
    assert all(0 <= float(x) <= WIDTH and 0 <= float(y) <= HEIGHT for x, y in numbers)


def test_of_many_points_each_drawn_one_is_the_mean_of_its_part() -> None:
    found = thinned(Points(range(3 * POINTS), [float(n % 3) for n in range(3 * POINTS)]))
    assert len(found.values) == POINTS
    assert set(found.values) == {1.0}


def job(uid: str = "1", **progress: Any) -> dict[str, Any]:
    return {"metadata": {"name": "j", "namespace": "n", "uid": uid}, "spec": {}, "status": {"progress": progress}}


def test_reports_become_curves_and_a_restart_goes_on_from_its_checkpoint() -> None:
    history = ProgressHistory()
    for step, loss in ((1, 0.9), (2, 0.8), (3, 0.7), (2, 0.6)):
        history.change(None, job(step=step, loss=loss, metrics={"acc": 1 - loss}))
    assert history.of(job())["loss"] == ([1, 2], [0.9, 0.6])
    assert "acc" in history.of(job())
    assert history.of(job(uid="2")) == {}, "another job of this name"
    history.change(job(), None)
    assert history.of(job()) == {}


def test_what_is_kept_of_a_job_is_bounded_and_goes_from_its_beginning_to_its_end() -> None:
    history = ProgressHistory()
    for step in range(10 * MOST_POINTS):
        history.change(None, job(step=step, loss=1.0, metrics={f"m{step}": 1.0}))
    found = history.of(job())
    assert len(found) <= MOST_TAGS
    assert len(found["loss"].steps) <= MOST_POINTS
    assert (found["loss"].steps[0], found["loss"].steps[-1]) == (0, 10 * MOST_POINTS - 1)


@pytest.mark.parametrize(
    "progress",
    [
        {},
        {"step": "x", "loss": 1},
        {"step": 10**400, "loss": 1.0},
        {"step": 1, "loss": True},
        {"step": 1, "metrics": 3},
    ],
    ids=str,
)
def test_reports_that_make_no_sense_make_no_curve(progress: dict[str, Any]) -> None:
    history = ProgressHistory()
    history.change(None, job(**progress))
    assert history.of(job()) == {}


def test_lines_are_called_after_the_job_and_of_several_folders_after_these() -> None:
    one = {"loss": Points([0], [1.0])}
    assert [*JobCurves(one, {}, False, "").sources("a")] == ["a"]
    assert [*JobCurves({}, {"/log/x": one}, False, "").sources("a")] == ["a"]
    assert [*JobCurves({}, {"/log/x": one, "/log/y/z": one}, False, "").sources("a")] == ["a x", "a y/z"]
    assert [*JobCurves(one, {"x": one, "/y": one}, False, "").sources("a")] == ["a", "a x", "a /y"]
    assert JobCurves({}, {}, False, "").sources("a") == {}


def test_only_what_differs_is_compared_and_variables_are_known_by_name() -> None:
    def spec(rate: str, *others: str) -> dict[str, Any]:
        variables = [{"name": name, "value": "1"} for name in others] + [{"name": "LR", "value": rate}]
        return {"worker": {"replicas": 2, "template": {"spec": {"containers": [{"name": "p", "env": variables}]}}}}

    facts = [
        comparing.facts_of_job({**job(loss=0.5), "spec": spec("0.1")}),
        comparing.facts_of_job({**job(loss=0.5), "spec": spec("0.2", "EXTRA")}),
    ]
    path = "worker.template.spec.containers[p].env"
    assert {row.name: row.values for row in comparing.differences(facts)} == {
        f"{path}[LR].value": ["0.1", "0.2"],
        f"{path}[EXTRA].value": ["", "1"],
    }


def test_a_spec_of_any_depth_and_size_is_compared_within_bounds() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = {"a": deep}
    wide = {f"k{n}": n for n in range(3 * comparing.MOST_FACTS)}
    assert len(comparing.facts_of_job({**job(), "spec": {"deep": deep, **wide}})) <= comparing.MOST_FACTS + 20


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"objects": "a/b,c/d"}, [("a", "b"), ("c", "d")]),
        ({"pick3": "a/b", "pick1": "a/b", "of": "jobs"}, [("a", "b")]),
        ({"objects": "a,/b,c/,"}, []),
    ],
)
def test_an_address_says_what_is_compared(query: dict[str, str], found: list[tuple[str, str]]) -> None:
    assert wanted(query) == found


def test_so_many_are_compared_at_most() -> None:
    assert len(wanted({"objects": ",".join(f"n/{place}" for place in range(100))})) == MOST
