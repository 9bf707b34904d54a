"""The list of a set's files: one order, totals that cost nothing, and what a walk finds is taken over."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from paddlecloud.cache.manifest import File, SampleManifest, walk

names = some.sampled_from(["a", "a.b", "a/b", "a/b/c", "a b", "z/\n", "z/'", "ü", "a0", "a/0"])
sets = some.dictionaries(names, some.tuples(some.integers(0, 99), some.integers(0, 3)), max_size=8)


def listed(manifest: SampleManifest) -> list[File]:
    return list(manifest.files())


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(sets, sets)
def test_a_reconciled_manifest_equals_what_was_found(
    tmp_path: Path, before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]
) -> None:
    (tmp_path / "m.db").unlink(missing_ok=True)
    manifest = SampleManifest(tmp_path / "m.db")
    manifest.put(File(name, size, mtime, "md5:x") for name, (size, mtime) in before.items())
    found = sorted((File(n, s, t) for n, (s, t) in after.items()), key=lambda file: os.fsencode(file.path))
    manifest.reconcile(iter(found))
    assert [file[:3] for file in listed(manifest)] == [file[:3] for file in found]
    kept = {name for name in before if after.get(name) == before[name]}
    assert {file.path for file in listed(manifest) if file.hash} == kept
    assert manifest.totals() == (len(after), sum(size for size, _ in after.values()))
    manifest.close()


def test_a_walk_is_in_the_manifests_order(tmp_path: Path) -> None:
    for name in ("a/x", "a.txt", "a/b/c", "a0", "b", "line\nbreak"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / ".hidden").write_text("x")
    found = [file.path for file in walk(str(tmp_path))]
    assert found == sorted(found, key=os.fsencode)
    assert found == ["a.txt", "a/b/c", "a/x", "a0", "b", "line\nbreak"]


def test_names_that_are_no_text_are_kept(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\xfe")
    manifest = SampleManifest(tmp_path / "m.db")
    manifest.put([File(name, 1, 2)])
    assert manifest.get(name) == File(name, 1, 2)
    manifest.close()


def test_a_folder_holds_what_is_below_it_and_not_its_neighbours(tmp_path: Path) -> None:
    manifest = SampleManifest(tmp_path / "m.db")
    manifest.put(File(name, 1, 0) for name in ("a", "a/b", "a/c/d", "a.b", "a0", "ab/c"))
    assert [file.path for file in manifest.files("a")] == ["a", "a/b", "a/c/d"]
    manifest.remove_below("a")
    assert [file.path for file in listed(manifest)] == ["a.b", "a0", "ab/c"]
    assert manifest.totals() == (3, 3)
    manifest.close()


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_totals_of_a_million_files_cost_what_those_of_ten_cost(tmp_path: Path) -> None:
    costs = {}
    for count in (10, 1_000_000):
        manifest = SampleManifest(tmp_path / f"{count}.db")
        for start in range(0, count, 10_000):
            numbers = range(start, min(start + 10_000, count))
            manifest.put(File(f"train/{number // 1000:04}/{number:07}.jpg", 100, number) for number in numbers)
        began = time.process_time()
        for _ in range(1000):
            assert manifest.totals() == (count, 100 * count)
        costs[count] = time.process_time() - began
        manifest.close()
    assert costs[1_000_000] < 3 * costs[10] + 0.05, costs
