"""What is read of a namespace whose users choose labels, numbers and sizes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paddlecloud.kube.client import Client
from paddlecloud.pipelines import names
from paddlecloud.pipelines.api import caller as module
from paddlecloud.pipelines.api import recurring, runs
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.paging import Query
from paddlecloud.pipelines.api.replies import RequestRefused
from unit.kube.test_kube_client import Wire


def caller_on(wire: Wire) -> Caller:
    return Caller(Client(wire), "kubeflow", str, str)


def cron(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}}


@pytest.mark.parametrize("find", [runs.find, recurring.find], ids=["run", "recurring run"])
def test_of_many_objects_with_one_id_one_is_read(find: Any) -> None:
    wire = Wire({"items": [cron("a")], "metadata": {"continue": "more"}})
    found = asyncio.run(find(caller_on(wire), "6f1c3d2e-0000-4000-8000-000000000000"))
    assert found["metadata"]["name"] == "a"
    assert [each["query"]["limit"] for each in wire.sent] == ["1"]


def test_recurring_runs_are_listed_by_small_pages_and_only_those_shown_are_read_again() -> None:
    wire = Wire({"items": [cron("a"), cron("b")], "metadata": {"continue": "more"}}, {"items": [cron("c")]})
    page = asyncio.run(recurring.listed(caller_on(wire), "kubeflow", Query(page_size="2")))
    assert (page.names, page.total, bool(page.next_token)) == (["a", "b"], 3, True)
    assert [each["query"].get("continue") for each in wire.sent] == [None, "more"]


def test_a_list_ends_at_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_READ", 100)
    wire = Wire({"items": [cron("a" * 200)]})
    with pytest.raises(RequestRefused, match="delete some"):
        asyncio.run(caller_on(wire).metadata(names.WORKFLOWS, "kubeflow"))
