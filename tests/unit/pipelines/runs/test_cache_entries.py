"""Which run a cached answer came from."""

from __future__ import annotations

import pytest

from paddlecloud.pipelines.runs.cache_entries import cache_of, run_of_entry


@pytest.mark.parametrize(
    ("entry", "run"),
    [
        ('{"nodeID": "greet-x7k2p-1234567890", "outputs": {}}', "greet-x7k2p"),
        ('{"nodeID": "greet"}', ""),
        ('{"nodeID": null}', ""),
        ("[]", ""),
        ("not json", ""),
        ("", ""),
    ],
)
def test_an_entry_names_the_node_that_made_it(entry: str, run: str) -> None:
    assert run_of_entry(entry) == run


def test_a_step_without_a_cache_has_no_entry() -> None:
    memo = {"cacheName": "pipeline-cache-a", "key": "k", "hit": True}
    workflow = {"metadata": {"name": "w"}, "status": {"nodes": {"w-1": {"memoizationStatus": memo}, "w-2": {}}}}
    assert [cache_of(workflow, node) for node in ("w-1", "w-2", "w-3")] == [
        ("pipeline-cache-a", "k"),
        ("", ""),
        ("", ""),
    ]
