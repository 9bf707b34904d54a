"""What the server reads of a body: bounded in memory, not in bytes alone."""

from __future__ import annotations

import tracemalloc

import pytest

from paddlecloud.pipelines.api import v2beta1
from paddlecloud.pipelines.api.replies import RequestRefused
from paddlecloud.pipelines.api.server import MAX_BODY, decoded
from paddlecloud.pipelines.runs import package
from paddlecloud.pipelines.runs.package import PackageError

MANY = '{"a":[' + "[]," * (MAX_BODY // 3 - 10) + "[]]}"


def test_a_body_of_very_many_values_is_refused_before_it_is_decoded() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(RequestRefused, match="more than 1,000,000 values"):
            decoded(MANY.encode())
        with pytest.raises(PackageError, match="more than 500,000 values"):
            package.parse(MANY)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 5 * len(MANY)


def test_a_root_for_artifacts_is_refused_and_an_empty_one_is_none() -> None:
    asked = v2beta1.run_in_body({"runtime_config": {"parameters": {"n": 1}, "pipeline_root": None}})
    assert asked.parameters == {"n": 1}
    with pytest.raises(RequestRefused, match="artifacts go to the artifact repository of Argo") as refused:
        v2beta1.run_in_body({"runtime_config": {"pipeline_root": "s3://elsewhere"}})
    assert refused.value.status == 400
