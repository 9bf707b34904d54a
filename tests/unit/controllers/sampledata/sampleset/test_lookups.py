"""What a pass over a set asks for beyond its caches: nothing that no rule would use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlecloud.api.sampleset import SampleSetStatus, Secret
from paddlecloud.controllers.node_folders import NodeFolders
from paddlecloud.controllers.sampledata.sampleset import lookups
from paddlecloud.controllers.sampledata.sampleset.case import (
    CacheServer,
    Observed,
    Parsed,
    SampleSetCase,
    SampleSetOptions,
)
from paddlecloud.controllers.sampledata.sampleset.pod_and_volume_views import training

PHASES = ("", "Bound", "Mount", "Syncing", "SyncFailed", "PartialReady", "Ready")
OWN, FOREIGN = Secret("own", "team"), Secret("foreign", "other")


def case(phase: str, *, sources: NodeFolders | None = None, **spec: Any) -> SampleSetCase:
    meta = {"name": "set", "namespace": "team", "uid": "u"}
    obj = {"metadata": meta, "spec": {"source": {"uri": "s3://b.endpoint/p"}, **spec}, "status": {"phase": phase}}
    parsed = Parsed.of(obj)
    assert parsed.error == ""
    return SampleSetCase(obj, parsed.settings, parsed.status, Observed(), 0.0, SampleSetOptions(sources=sources))


@pytest.mark.parametrize("phase", PHASES)
def test_secrets_are_read_around_an_import_and_foreign_ones_always(phase: str) -> None:
    named = {
        "secretRef": {"name": "own"},
        "source": {"uri": "s3://b.endpoint/p", "secretRef": {"name": "foreign", "namespace": "other"}},
    }
    own = {OWN} if phase in ("", "Mount", "Syncing", "SyncFailed") else set()
    assert set(lookups.secrets(case(phase, **named))) == {FOREIGN, *own}


@pytest.mark.parametrize("phase", PHASES)
def test_the_last_warning_is_asked_for_while_the_first_server_is_awaited(phase: str) -> None:
    waiting = case(phase)
    assert lookups.needs_last_warning(waiting) is (phase == "Bound")
    served = Observed(cache_servers=(CacheServer(0, "set-runtime-0", "u", ready=True),))
    assert not lookups.needs_last_warning(replace(waiting, observed=served))


@pytest.mark.parametrize("phase", PHASES)
def test_servers_are_asked_whether_caches_are_empty_only_while_they_serve(phase: str) -> None:
    assert lookups.needs_clearing(case(phase)) is (phase in ("PartialReady", "Ready"))


@pytest.mark.parametrize(
    ("uri", "allowed", "folder"),
    [
        ("file:///srv/data", True, "/srv/data"),
        ("file:///etc/keys", True, ""),
        ("file:///srv/data", False, ""),
        ("s3://b.endpoint/p", True, ""),
    ],
)
def test_a_folder_is_looked_for_only_where_the_set_may_read_it(uri: str, allowed: bool, folder: str) -> None:
    sources = NodeFolders(("/srv",), "ROOTS", "value") if allowed else None
    unsynced = case("", sources=sources, source={"uri": uri})
    assert lookups.source_folder(unsynced) == folder
    assert lookups.source_folder(case("", sources=sources, source={"uri": uri}, noSync=True)) == ""


def test_a_set_that_cannot_be_decoded_says_why_and_keeps_its_name() -> None:
    parsed = Parsed.of({"metadata": {"name": "set", "namespace": "team", "uid": "u"}, "spec": {"partitions": "many"}})
    assert parsed.decoded is None
    assert "partitions" in parsed.error
    assert (parsed.settings.name, parsed.status) == ("set", SampleSetStatus())


@pytest.mark.parametrize(("phase", "reads"), [("Pending", False), ("Running", True), ("Completed", False)])
def test_a_job_that_waits_does_not_read(phase: str, reads: bool) -> None:
    job = {"metadata": {"name": "j"}, "status": {"phase": phase}}
    assert training([job]) == (("PaddleJob j",) if reads else ())
