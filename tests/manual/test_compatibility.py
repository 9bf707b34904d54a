"""The compatibility page is complete, honest and fresh."""

from __future__ import annotations

import pytest

from . import compatibility, where

INVENTORY = compatibility.load()

HERE = "tests/manual/test_yaml.py::test_the_yaml_has_not_been_touched"
THERE = "tests/cluster/test_manual_data.py::test_a_job_trains_from_the_claim_of_the_manual"
BOTH = "tests/scenarios/test_paddlejob.py::test_two_workers_learn_digits_and_agree_on_every_weight"
SOAK = "tests/embedded/test_juicefs_life.py::test_a_set_of_the_original_operator_goes_on_with_its_data"
UNIT = "tests/unit/controllers/sampledata/test_vectors.py::test_keys_travel_beside_the_source_trimmed_and_never_in_it"


def test_every_block_of_the_manual_has_a_row_and_every_pass_a_test() -> None:
    assert list(compatibility.check(INVENTORY)) == []


def test_every_yaml_of_the_manual_is_kept_and_has_a_row() -> None:
    named = {row.file for row in INVENTORY.rows if row.file}
    kept = {path.relative_to(compatibility.EXAMPLES).as_posix() for path in compatibility.EXAMPLES.rglob("*.yaml")}
    afters = {name.replace("before", "after") for name in named if "before" in name}
    assert kept == named | afters


def test_the_page_is_what_the_inventory_says() -> None:
    written = compatibility.PAGE.read_text(encoding="utf-8")
    assert written == compatibility.render(INVENTORY), "run: PYTHONPATH=tests python -m manual.compatibility"


def faults(row: compatibility.Row) -> list[str]:
    return list(compatibility.check(INVENTORY._replace(rows=[row])))


def test_a_pass_without_a_test_is_found() -> None:
    row = INVENTORY.rows[0]._replace(embedded=compatibility.Outcome("passes", "", ()))
    assert any("without a test" in fault for fault in faults(row))


def test_a_test_that_does_not_exist_is_found() -> None:
    claim = compatibility.Outcome("passes", "", (HERE, "tests/manual/test_compatibility.py::test_nothing"))
    row = INVENTORY.rows[0]._replace(embedded=claim)
    assert any("there is no test" in fault for fault in faults(row))


@pytest.mark.parametrize(
    ("platform", "tests", "fault"),
    [
        ("embedded", (BOTH,), ""),
        ("cluster", (BOTH,), ""),
        ("cluster", (HERE,), f"does not run on this platform: {HERE}"),
        ("cluster", (BOTH, HERE), f"does not run on this platform: {HERE}"),
        ("embedded", (THERE,), f"does not run on this platform: {THERE}"),
        ("embedded", (SOAK,), f"does not run on this platform: {SOAK}"),
        ("embedded", (UNIT,), f"shown on no platform: {UNIT}"),
        ("embedded", (HERE, UNIT), ""),
    ],
)
@pytest.mark.parametrize("kind", ["passes", "differs"])
def test_a_test_of_another_platform_is_refused(platform: str, tests: tuple[str, ...], fault: str, kind: str) -> None:
    other = compatibility.Outcome("differs", "why", ())
    outcomes = {"embedded": other, "cluster": other, platform: compatibility.Outcome(kind, "why", tests)}
    found = faults(INVENTORY.rows[0]._replace(**outcomes))
    reported = [each for each in found if "platform" in each]
    assert [each.endswith(f"{platform}: {fault}") for each in reported] == [True] * bool(fault), reported


@pytest.mark.parametrize(
    ("test", "platform", "shown"),
    [
        (HERE, "embedded", "every change"),
        (BOTH, "embedded", "every change"),
        (BOTH, "cluster", "every change"),
        (
            "tests/scenarios/test_paddlejob.py::test_under_the_launcher_ranks_find_each_other_by_name",
            "cluster",
            "full tier",
        ),
        (THERE, "cluster", "full tier"),
        (
            "tests/embedded/test_gpus.py::test_the_machines_own_gpus_are_given_out_and_cuda_agrees",
            "embedded",
            "on a GPU",
        ),
        (
            "tests/embedded/test_gpus.py::test_each_pod_has_gpus_of_its_own_or_waits_for_them",
            "embedded",
            "every change",
        ),
        (UNIT, "embedded", None),
    ],
)
def test_markers_and_folder_say_when_a_test_runs(test: str, platform: str, shown: str | None) -> None:
    assert where.tier(test, platform) == shown


def test_a_row_is_shown_when_the_least_often_run_of_its_tests_runs() -> None:
    claim = compatibility.Outcome("passes", "", (BOTH, THERE))
    assert compatibility.rarest(claim, "cluster") == "full tier"


def test_a_block_without_a_row_is_found() -> None:
    assert "block yoloe 2 has no row" in compatibility.check(INVENTORY._replace(rows=INVENTORY.rows[:1]))
