"""Every call that kfp's generated clients can make is routed, or refused with a sentence."""

from __future__ import annotations

import pytest

from paddlecloud.pipelines.api import routing
from paddlecloud.pipelines.api.replies import RequestRefused
from paddlecloud.pipelines.api.server import ROUTES

V1 = """
GET /experiments · POST /experiments · GET /experiments/1 · DELETE /experiments/1 · POST /experiments/1:archive
POST /experiments/1:unarchive · GET /jobs · POST /jobs · GET /jobs/1 · DELETE /jobs/1 · POST /jobs/1/disable
POST /jobs/1/enable · GET /pipeline_versions · GET /pipeline_versions/1 · DELETE /pipeline_versions/1
GET /pipeline_versions/1/templates · GET /pipelines · POST /pipelines · POST /pipelines/upload
POST /pipelines/upload_version · GET /pipelines/1 · DELETE /pipelines/1 · GET /pipelines/1/templates
POST /pipelines/1/default_version/2 · GET /runs · POST /runs · GET /runs/1 · DELETE /runs/1 · POST /runs/1:archive
POST /runs/1:unarchive · GET /runs/1/nodes/2/artifacts/3:read · POST /runs/1/retry · POST /runs/1/terminate
"""
V2 = """
GET /experiments · POST /experiments · GET /experiments/1 · DELETE /experiments/1 · POST /experiments/1:archive
POST /experiments/1:unarchive · GET /pipelines · POST /pipelines · GET /pipelines/names/x · POST /pipelines/upload
POST /pipelines/upload_version · GET /pipelines/1 · DELETE /pipelines/1 · GET /pipelines/1/versions
GET /pipelines/1/versions/2 · DELETE /pipelines/1/versions/2 · GET /recurringruns · POST /recurringruns
GET /recurringruns/1 · DELETE /recurringruns/1 · POST /recurringruns/1:disable · POST /recurringruns/1:enable
GET /runs · POST /runs · GET /runs/1 · DELETE /runs/1 · POST /runs/1:archive · POST /runs/1:unarchive
POST /runs/1:retry · POST /runs/1:terminate
"""
NOT_OFFERED = [
    "POST /apis/v1beta1/pipeline_versions",
    "POST /apis/v1beta1/runs/1:reportMetrics",
    "GET /apis/v2beta1/auth",
    "GET /apis/v2beta1/filters",
    "POST /apis/v2beta1/pipelines/create",
    "PATCH /apis/v2beta1/pipelines/1",
    "POST /apis/v2beta1/visualizations/x",
    "POST /apis/v2beta1/workflows",
    "GET /apis/v3/runs",
    "GET /",
    "GET /runs/1/../../x",
]


def calls(version: str, text: str) -> list[str]:
    found = [call.split() for line in text.strip().splitlines() for call in line.split(" · ")]
    return [f"{method} /apis/{version}{path}" for method, path in found]


@pytest.mark.parametrize("call", calls("v1beta1", V1) + calls("v2beta1", V2))
def test_a_call_of_the_clients_is_answered_by_one_function_of_its_version(call: str) -> None:
    method, path = call.split()
    handler, _ = routing.match(ROUTES, method, path)
    artifact = path.endswith(":read")
    assert handler.__module__.rpartition(".")[2] == ("artifacts" if artifact else path.split("/")[2])


@pytest.mark.parametrize("call", NOT_OFFERED)
def test_what_is_not_offered_is_refused_by_its_name(call: str) -> None:
    method, path = call.split()
    with pytest.raises(RequestRefused, match=f"{method} .* is not offered here") as refused:
        routing.match(ROUTES, method, path)
    assert refused.value.status == 501


def test_parts_of_a_path_reach_the_function() -> None:
    _, parts = routing.match(ROUTES, "GET", "/apis/v1beta1/runs/team-a.1/nodes/two-steps-x-2/artifacts/main-logs:read")
    assert parts == {"id": "team-a.1", "node": "two-steps-x-2", "artifact": "main-logs"}
