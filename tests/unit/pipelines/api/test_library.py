"""The experiment of runs that name none, when several requests ask for it and when it may not be made."""

from __future__ import annotations

import json

import pytest

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import already_exists
from paddlecloud.kube.transport import Response
from paddlecloud.pipelines.api import library, records
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.replies import RequestRefused
from unit.kube.test_kube_client import Wire

THERE = records.config_map("experiment", "e-1", library.DEFAULT_EXPERIMENT, "n")
THERE["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
NONE: dict[str, list[object]] = {"items": []}
TAKEN = Response(409, json.dumps(already_exists("configmaps", "x").status()).encode())


@pytest.mark.parametrize(
    "answers",
    [
        ({"items": [THERE]},),
        (NONE, THERE),
        (NONE, TAKEN, {"items": [THERE]}),  # another request made it meanwhile
    ],
    ids=["there", "made", "made by another"],
)
async def test_the_default_experiment_is_found_or_made(answers: tuple[Response | dict[str, object], ...]) -> None:
    caller = Caller(Client(Wire(*answers)), "kubeflow", lambda: "e-1", str)
    assert (await library.default_experiment(caller, "n")).id == "e-1"


@pytest.mark.parametrize("failing", ["named", "create"])
async def test_a_refusal_that_means_something_else_is_passed_on(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace with too many objects to read is no reason to make another one there."""
    wire = Wire(NONE, NONE)

    async def refuse(*_: object) -> None:
        raise RequestRefused(400, "delete some")

    monkeypatch.setattr(library, failing, refuse)
    with pytest.raises(RequestRefused, match="delete some"):
        await library.default_experiment(Caller(Client(wire), "kubeflow", str, str), "n")
    assert len(wire.sent) == (0 if failing == "named" else 1)


async def test_the_newest_of_two_versions_that_were_uploaded_within_a_second_is_the_later_one() -> None:
    pipeline = records.of_config_map(THERE)
    uploaded = []
    for revision, own_id in (("9", "z"), ("10", "a")):
        made = records.config_map("version", own_id, f"version {own_id}", "n", parent=pipeline)
        made["metadata"] |= {"uid": own_id, "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": revision}
        uploaded.append(made)
    caller = Caller(Client(Wire({"items": uploaded})), "kubeflow", str, str)
    assert [version.id for version in await library.versions(caller, pipeline)] == ["a", "z"]
