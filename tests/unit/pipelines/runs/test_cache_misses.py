"""Runs that failed because of the cache itself."""

from __future__ import annotations

import pytest

from paddlecloud.pipelines.runs.cache_misses import lacks_cache_rights

REFUSED = (
    'User "system:serviceaccount:argo:argo" cannot {} resource "configmaps" in API group "" in the namespace "argo"'
)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (f"train: could not save to config map cache: configmaps is forbidden: {REFUSED.format('create')}", True),
        (f"error creating cache entry: configmaps is forbidden: {REFUSED.format('update')}. Please check", True),
        (f'configmaps "pipeline-cache-a.greet-say" is forbidden: {REFUSED.format("update")}', True),
        (f'configmaps "settings" is forbidden: {REFUSED.format("get")}', False),
        ("could not save to config map cache: etcdserver: request is too large", False),
        ("train: main: Error (exit code 1)", False),
    ],
)
def test_a_run_that_failed_for_lack_of_a_right_of_argo_is_recognised(failure: str, expected: bool) -> None:
    assert lacks_cache_rights(failure) is expected
