"""The page of Kubernetes' specs says of each what became of it, and why where it did not pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import __main__ as program
from . import areas, page, record
from .areas import Area
from .record import Record
from .specs import Spec

WEBHOOKS = Area("webhooks", ("AdmissionWebhook",), "Nobody runs one.")
SLOW = Area("slow", ("takes long",), "It waits for a day.")
EMBEDDED = Record(
    "v1", "abc", "2026-01-01", 20.0, {"[sig-apps] Job runs": "passed", "[sig-apps] Job takes long": "failed"}
)
CLUSTER = Record("v1", "abc", "2026-01-02", 60.0, {
    "[sig-apps] Job runs": "passed", "[sig-apps] Job takes long": "passed",
    "[sig-api] AdmissionWebhook denies": "passed",
})  # fmt: skip


def test_every_spec_has_its_row_and_shares_are_of_what_is_served() -> None:
    text = page.render(EMBEDDED, CLUSTER, [WEBHOOKS], [SLOW])
    assert "**1 of 2 pass (50.0 %)**; 1 are refused" in text
    assert "| webhooks | 1 | Nobody runs one. |" in text
    assert "| [sig-apps] Job takes long | passed | It waits for a day. |" in text
    assert "| [sig-api] AdmissionWebhook denies | refused | passed |" in text
    assert "| apps | 1 | 1 | 0 | 2 |" in text


def test_a_platform_that_has_not_run_yet_has_a_column_that_says_so(tmp_path: Path) -> None:
    text = page.render(EMBEDDED, record.load(tmp_path / "absent.txt"), [WEBHOOKS], [SLOW])
    assert "| cluster | `none` | never | 0 |" in text
    assert "| [sig-apps] Job runs | passed | not run |" in text


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record.save(tmp_path / "r.txt", EMBEDDED)
    assert record.load(tmp_path / "r.txt") == EMBEDDED


def test_how_long_specs_took_and_what_ran_again_is_in_the_record(tmp_path: Path) -> None:
    spec = Spec("[sig-apps] Job takes long", "passed", 59.6, "")
    later = record.with_more(EMBEDDED, [spec], commit="def", date="2026-01-03")
    record.save(tmp_path / "r.txt", later)
    assert record.load(tmp_path / "r.txt") == later
    assert later.states == {"[sig-apps] Job runs": "passed", "[sig-apps] Job takes long": "passed"}
    assert later.seconds == {"[sig-apps] Job takes long": 60}
    text = page.render(later, CLUSTER, [WEBHOOKS], [])
    assert "| embedded | `abc` | 2026-01-01 | 20 |\n| embedded, 1 of them later | `def` | 2026-01-03 | – |" in text


def test_a_spec_that_is_refused_no_longer_has_not_run() -> None:
    states = {**EMBEDDED.states, "[sig-api] AdmissionWebhook denies": "refused"}
    assert page.judge("[sig-api] AdmissionWebhook denies", EMBEDDED._replace(states=states), []) == "not run"


def test_the_page_is_what_the_records_say() -> None:
    assert program.PAGE.read_text(encoding="utf-8") == program.text()


def test_areas_that_could_be_served_count_as_failures_in_the_stricter_share() -> None:
    text = page.render(EMBEDDED, CLUSTER, [WEBHOOKS._replace(stricter=True)], [SLOW])
    assert "could serve (webhooks) have 1 of these; with them as failures it is 1 of 3 (33.3 %)." in text


def test_what_fails_on_the_cluster_has_its_row_and_reason() -> None:
    states = {**CLUSTER.states, "[sig-apps] Job takes long": "failed"}
    text = page.render(EMBEDDED, CLUSTER._replace(states=states), [WEBHOOKS], [SLOW], [SLOW._replace(why="No image.")])
    assert "| [sig-apps] Job takes long | failed | No image. |" in text


@pytest.mark.parametrize(
    ("path", "listed"),
    [(record.EMBEDDED, areas.failures()), (record.CLUSTER, areas.cluster_failures())],
    ids=["embedded", "cluster"],
)
def test_nothing_fails_without_a_reason_and_no_reason_is_left_over(path: Path, listed: list[Area]) -> None:
    states = record.load(path).states
    failed = [name for name, state in states.items() if state == "failed"]
    assert [name for name in failed if areas.find(listed, name) is None] == []
    assert [area.name for area in listed if not any(map(area.holds, failed))] == []


@pytest.mark.parametrize("area", areas.refused(), ids=lambda area: area.name)
def test_a_refused_area_has_specs_and_none_of_them_ran(area: Area) -> None:
    states = {name: state for name, state in record.load(record.EMBEDDED).states.items() if area.holds(name)}
    assert states
    assert set(states.values()) == {"refused"}


def test_most_specs_pass_also_with_what_could_be_served_as_failures() -> None:
    embedded, refused = record.load(record.EMBEDDED), [area for area in areas.refused() if not area.stricter]
    judged = [page.judge(name, embedded, refused) for name in embedded.states]
    counted = [state for state in judged if state != page.REFUSED]
    assert len(counted) > 300
    assert counted.count("passed") >= 0.95 * len(counted)
