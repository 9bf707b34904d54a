"""What the server reads of a body: bounded in memory, not in bytes alone."""

from __future__ import annotations

import tracemalloc

import pytest

from paddlecloud.pipelines.api.replies import Refused
from paddlecloud.pipelines.api.server import MAX_BODY, decoded
from paddlecloud.pipelines.runs import package
from paddlecloud.pipelines.runs.package import PackageError

MANY = '{"a":[' + "[]," * (MAX_BODY // 3 - 10) + "[]]}"


def test_a_body_of_very_many_values_is_refused_before_it_is_decoded() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(Refused, match="more than 1,000,000 values"):
            decoded(MANY.encode())
        with pytest.raises(PackageError, match="more than 500,000 values"):
            package.parse(MANY)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 5 * len(MANY)
