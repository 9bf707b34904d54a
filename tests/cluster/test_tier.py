"""The full tier is cut into parts: no test file is left out, none runs twice, and the page shows what was seen."""

from __future__ import annotations

import os
import threading
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from e2e import record
from scenarios import test_pipeline_demo

from . import tier


def test_every_test_file_for_a_cluster_belongs_to_exactly_one_part() -> None:
    there = {
        str(path.relative_to(tier.ROOT)) for folder in tier.FOLDERS for path in (tier.ROOT / folder).glob("test_*.py")
    }
    counted = Counter(file for part in tier.PARTS.values() for file in tier.files_of(part))
    assert sorted(there - set(counted)) == [], "in no part"
    assert [file for file, times in counted.items() if times > 1] == [], "in several parts"


@pytest.mark.parametrize("name", tier.PARTS)
def test_every_pattern_of_a_part_names_files_that_are_there(name: str) -> None:
    part = tier.PARTS[name]
    assert bool(part.files) is not part.conformance
    assert all(list(tier.ROOT.glob(glob)) for glob in part.files)


@pytest.mark.parametrize("client", tier.CLIENTS, ids=lambda client: client.name)
def test_every_client_of_others_is_run_where_the_page_says(client: tier.Client) -> None:
    for file in (client.embedded, client.cluster):
        assert (client.word or client.name) in (tier.ROOT / file).read_text(encoding="utf-8"), file
    assert tier.part_of(client.cluster) in tier.PARTS


def test_a_report_is_counted_with_the_requests_that_were_generated(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    counted = '<testcase><properties><property name="requests" value="10000"/></properties></testcase>'
    report.write_text(f'<testsuites><testsuite tests="9" skipped="1">{counted}</testsuite></testsuites>')
    assert tier.pytest_counts(report) == {"passed": 8, "skipped": 1, "requests": 10_000}
    report.write_text('<testsuites><testsuite tests="9" skipped="0"><testcase/></testsuite></testsuites>')
    assert tier.pytest_counts(report) == {"passed": 9, "skipped": 0}


def test_the_conformance_part_is_counted_by_its_own_record() -> None:
    kept = record.NEVER._replace(states={"a": "passed", "b": "failed", "c": "refused"})
    assert tier.conformance_counts(kept) == {"passed": 1, "skipped": 1}


def test_the_conformance_part_starts_no_cluster_and_is_noted_when_it_is_green(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(tier, "_python", lambda module, **env: done.append(module) or 0)
    monkeypatch.setattr(tier, "_harness", lambda *arguments: done.append("cluster"))
    monkeypatch.setattr(tier, "note", lambda name, counts, seconds: done.append(f"{name}: {sorted(counts)}"))
    monkeypatch.setattr(tier.programs, "find_or_build", lambda say: done.append("build"))
    assert tier.run_part("e2e") == 0
    assert done == ["build", "e2e", "e2e: ['passed', 'skipped']"]


def test_generated_requests_are_more_in_the_full_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(tier, "_python", lambda module, *arguments, **env: seen.append(env.get("PDC_VERDICTS")) or 1)
    monkeypatch.setattr(tier, "_harness", lambda *arguments: None)
    assert tier.run_part("api") == 1
    assert seen == ["10000"]


def test_the_backend_of_kubeflow_pipelines_is_built_and_started_in_its_own_part_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(tier, "_harness", lambda *arguments: asked.append(arguments))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(tier, "_python", lambda module, *arguments, **env: 0)
    monkeypatch.setattr(tier, "_started", lambda *words, **more: SimpleNamespace(wait=lambda: 0))
    assert tier.run_core([], 1) == 0
    assert [words[0] for words in asked] == ["down", "build", "up", "down"]
    monkeypatch.setattr(tier, "_python", lambda module, *arguments, **env: 1)
    for name, part in tier.PARTS.items():
        if name != "kfp" and not part.conformance:
            tier.run_part(name)
    assert not any("kfp" in words for words in asked)
    asked.clear()
    tier.run_part("kfp")
    assert [words[0] for words in asked if "kfp" in words] == ["build", "up"]


@pytest.mark.parametrize("name", tier.PARTS)
def test_a_part_with_tests_for_ci_is_in_one_share(name: str) -> None:
    shares = [share for share in tier.CORE for part in share if part == name]
    files = [tier.ROOT / file for file in tier.files_of(tier.PARTS[name])]
    sources = {*files, *(file.with_name("conftest.py") for file in files if file.parent.name == "conformance")}
    marked = any("pytest.mark.core" in source.read_text(encoding="utf-8") for source in sources)
    assert len(shares) == int(marked and not tier.PARTS[name].starts_clusters)


def test_the_manuals_pipeline_is_among_the_tests_for_ci() -> None:
    test = test_pipeline_demo.test_the_manuals_demo_runs_from_its_data_to_an_answering_url
    (given,) = [mark.args[1] for mark in test.pytestmark if mark.name == "parametrize"]
    chosen = [each.id for each in given if any(mark.name == "core" for mark in each.marks)]
    assert chosen == ["the manual's code"]


def test_tests_for_ci_share_two_clusters_after_those_that_start_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    both_busy = threading.Barrier(2, timeout=10)
    done: list[tuple[str, ...]] = []

    def in_lane(label: str, lane: tier.Lane, *words: str) -> tuple[int, str]:
        both_busy.wait()
        done.append(words)
        return int("data" in words), f"output of {label}"

    monkeypatch.setattr(tier, "_python", lambda module, *arguments, **env: done.append(arguments) or 0)
    monkeypatch.setattr(tier, "_run_in_lane", in_lane)
    monkeypatch.setattr(tier, "_harness", lambda *arguments: None)
    monkeypatch.setattr(tier, "open_lanes", lambda count: nullcontext([tier.Lane(each + 1) for each in range(count)]))
    assert tier.run_core([], 2) == 1
    assert done[0] == ("-m", "core", "tests/cluster/test_lifecycle.py")
    assert sorted(done[1:]) == sorted(("core", *share) for share in tier.CORE)


@pytest.mark.parametrize(
    ("names", "alone", "statuses"),
    [(["jobs"], False, [0]), (["api"], True, [1]), (["data", "api"], False, [1, 0]), (["data", "api"], False, [0, 2])],
)
def test_tests_of_the_api_run_beside_the_others(
    monkeypatch: pytest.MonkeyPatch, names: list[str], alone: bool, statuses: list[int]
) -> None:
    started: list[tuple[str, ...]] = []
    waited: list[int] = []

    def start(module: str, *arguments: str, **more: object) -> SimpleNamespace:
        assert waited == [], "all are started before any is waited for"
        number = len(started)
        started.append(arguments)
        return SimpleNamespace(wait=lambda: waited.append(number) or statuses[number])

    monkeypatch.setattr(tier, "_started", start)
    monkeypatch.setattr(tier, "_harness", lambda *arguments: None)
    assert tier.run_core(names, 1) == max(statuses)
    assert waited == list(range(len(statuses)))
    with_api = [any("tests/conformance" in word for word in words) for words in started]
    assert with_api == [True, False][: len(started)] if "api" in names else with_api == [False]
    assert all(word in tier.files_of(tier.PARTS["api"]) for word in started[0] if alone and word.startswith("tests/"))


def test_two_lanes_share_all_parts_and_those_that_start_clusters_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    both_busy = threading.Barrier(2, timeout=10)
    ran: list[tuple[str, int]] = []

    def part_in_lane(name: str, lane: tier.Lane) -> int:
        first = lane.number not in {number for _, number in ran}
        ran.append((name, lane.number))
        if first:
            both_busy.wait()
        return int(name == "data")

    monkeypatch.setattr(tier, "run_part", lambda name: ran.append((name, 0)) or 0)
    monkeypatch.setattr(tier, "_run_part_in_lane", part_in_lane)
    monkeypatch.setattr(tier, "_harness", lambda *arguments: None)
    monkeypatch.setattr(tier, "open_lanes", lambda count: nullcontext([tier.Lane(each + 1) for each in range(count)]))
    assert tier.run_parts(list(tier.PARTS), 2) == ["data"]
    assert sorted(name for name, _ in ran) == sorted(tier.PARTS)
    assert ran[0] == ("lifecycle", 0)
    assert {lane for _, lane in ran[1:]} == {1, 2}


def test_the_page_shows_where_each_part_was_last_green() -> None:
    assert tier.PAGE.read_text(encoding="utf-8") == tier.render(tier.load_seen()), "run `make test-cluster PART=NAME`"
    seen = {"data": {"commit": "abc1234", "date": "2026-01-02", "passed": 7, "skipped": 1, "minutes": 9.5}}
    rows = tier.render(seen).splitlines()
    assert any("| data |" in row and "| `abc1234` | 2026-01-02 | 7 passed, 1 skipped | 9.5 |" in row for row in rows)
    requested = tier.render({"api": {**seen["data"], "requests": 10_000}})
    assert "7 passed, 1 skipped, 10,000 generated requests" in requested
    assert any("| chart |" in row and "| never |" in row for row in rows)
