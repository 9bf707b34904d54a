"""Secrets of another namespace: used when their owner grants it, and otherwise nothing is learned about them."""

from __future__ import annotations

import pytest

from paddlecloud.controllers import grants
from paddlecloud.kube.resource import (
    CSIDRIVERS,
    NAMESPACES,
    PERSISTENTVOLUMES,
    SAMPLEJOBS,
    SAMPLESETS,
    SECRETS,
    Object,
    Resource,
)

from .world import NAMESPACE, SampleDataCluster, condition, done

OWNER = "owner"
KEYS = {"access_key": "AK", "secret_key": "SK"}
FILE_SYSTEM = {"name": "fs", "storage": "redis", "metaurl": "redis://r/0", "bucket": "redis://r/1"}
REFERENCE = {"name": "keys", "namespace": OWNER}
SOURCE = {"uri": "bos://bucket.endpoint/x", "secretRef": REFERENCE}


@pytest.fixture(autouse=True)
async def _owner(here: SampleDataCluster) -> None:
    await here.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OWNER}})


async def grant(here: SampleDataCluster, to: str | None) -> None:
    change = {"metadata": {"annotations": {grants.GRANTED: to}}}
    await here.client.patch(SECRETS, "keys", change, namespace=OWNER)


async def refused(here: SampleDataCluster, resource: Resource, name: str) -> str:
    """Wait for the refusal; its message."""

    async def reported() -> str:
        status = await here.status(resource, name)
        return str(status.get("message") or "") if "is not granted" in str(status.get("message")) else ""

    await here.said(name, "ErrorSecretNotGranted")
    return str(await here.until(reported, seconds=20))


def handed_over(here: SampleDataCluster) -> list[dict[str, str]]:
    return [dict(work.credentials) for work in here.servers.orders.values() if work.credentials]


def test_a_secret_is_usable_at_home_and_where_it_is_granted() -> None:
    def secret(**annotations: str) -> Object:
        return {"metadata": {"name": "keys", "namespace": OWNER, "annotations": annotations}}

    listed = secret(**{grants.GRANTED: "team-a, team-b"})
    assert grants.is_usable(secret(), OWNER)
    assert grants.is_usable(listed, "team-a")
    assert grants.is_usable(listed, "team-b")
    for other in ("team", "team-a, team-b", "team-", "*", ""):
        assert not grants.is_usable(listed, other), other
    assert not grants.is_usable(secret(), "team-a")
    assert not grants.is_usable(secret(**{grants.GRANTED: ""}), "")


@pytest.mark.parametrize("exists", [True, False], ids=["secret exists", "secret does not exist"])
async def test_a_set_learns_nothing_about_a_secret_that_is_not_granted(here: SampleDataCluster, exists: bool) -> None:
    if exists:
        await here.create_secret("keys", namespace=OWNER, **KEYS)
    await here.create_set(source=SOURCE)
    assert await refused(here, SAMPLESETS, "imagenet") == (
        "Secret owner/keys is not granted to namespace default: use a Secret of default, or ask the owner of owner to "
        "annotate theirs with batch.paddlepaddle.org/granted-namespaces: default"
    )
    assert condition(await here.status(SAMPLESETS, "imagenet"), "Valid")[0] == "False"
    assert await here.get(PERSISTENTVOLUMES, "imagenet", None) is None
    assert handed_over(here) == []


async def test_a_granted_secret_is_used_as_one_of_the_sets_own(here: SampleDataCluster) -> None:
    await here.create_secret("keys", namespace=OWNER, **KEYS)
    await here.create_set(source=SOURCE)
    await refused(here, SAMPLESETS, "imagenet")
    await grant(here, f"elsewhere,{NAMESPACE}")
    await here.phase("Ready")
    assert handed_over(here) == [{"access-key": "AK", "secret-key": "SK"}]


async def ready_then_withdrawn(here: SampleDataCluster) -> None:
    await here.create_secret("keys", namespace=OWNER, **KEYS)
    await grant(here, NAMESPACE)
    await here.create_set(source=SOURCE)
    await here.phase("Ready")
    await grant(here, None)
    await refused(here, SAMPLESETS, "imagenet")


async def test_a_withdrawn_grant_stops_what_comes_next(here: SampleDataCluster) -> None:
    """What runs goes on, the status says so, nothing is scaled or imported; a new grant lets the set go on."""
    await ready_then_withdrawn(here)
    status = await here.status(SAMPLESETS, "imagenet")
    assert (status["phase"], condition(status, "Valid")[0]) == ("Ready", "False")
    orders = len(here.servers.orders)
    await here.edit(SAMPLESETS, "imagenet", {"partitions": 2})
    await here.pass_time(60)
    assert len(here.servers.orders) == orders
    assert (await here.status(SAMPLESETS, "imagenet"))["runtimeStatus"]["runtimeReady"] == "1/1"
    await grant(here, NAMESPACE)

    async def scaled() -> bool:
        status = await here.status(SAMPLESETS, "imagenet")
        return bool(status["runtimeStatus"]["runtimeReady"] == "2/2" and condition(status, "Valid")[0] == "True")

    await here.until(scaled)


async def test_a_set_whose_grant_was_withdrawn_can_be_deleted(here: SampleDataCluster) -> None:
    await ready_then_withdrawn(here)
    await here.client.delete(SAMPLESETS, "imagenet", namespace=NAMESPACE)
    await here.gone(SAMPLESETS, "imagenet")


async def test_a_juicefs_volume_names_a_foreign_secret_only_when_that_is_granted(here: SampleDataCluster) -> None:
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "csi.juicefs.com"}}
    await here.client.create(CSIDRIVERS, {**driver, "spec": {}})
    await here.create_secret("keys", namespace=OWNER, **FILE_SYSTEM)
    await here.create_set(secretRef=REFERENCE)
    await refused(here, SAMPLESETS, "imagenet")
    assert await here.get(PERSISTENTVOLUMES, "imagenet", None) is None
    await grant(here, NAMESPACE)
    await here.phase("Ready")
    volume = await here.get(PERSISTENTVOLUMES, "imagenet", None)
    assert volume is not None
    assert volume["spec"]["csi"]["nodePublishSecretRef"] == REFERENCE
    await here.edit(SAMPLESETS, "imagenet", {"secretRef": {"name": "own", "namespace": NAMESPACE}})
    await grant(here, None)
    await refused(here, SAMPLESETS, "imagenet")  # the volume goes by the old one, whatever the spec says now


async def test_a_job_without_a_secret_waits_for_the_grant_of_the_sets(here: SampleDataCluster) -> None:
    await ready_then_withdrawn(here)
    here.servers.orders.clear()
    await here.create_job("in", "sync")
    assert (await refused(here, SAMPLEJOBS, "in")).startswith("Secret owner/keys is not granted to namespace default")
    assert handed_over(here) == []
    await grant(here, NAMESPACE)
    await here.phase("Succeeded", "in", of=SAMPLEJOBS)
    assert handed_over(here) == [{"access-key": "AK", "secret-key": "SK"}]


@pytest.mark.parametrize("exists", [True, False], ids=["secret exists", "secret does not exist"])
async def test_a_job_waits_for_the_grant_of_its_secret(here: SampleDataCluster, exists: bool) -> None:
    await here.create_set()
    await here.phase("Ready")
    if exists:
        await here.create_secret("keys", namespace=OWNER, **KEYS)
    await here.create_job("in", "sync", secretRef=REFERENCE)
    assert (await refused(here, SAMPLEJOBS, "in")).startswith("Secret owner/keys is not granted to namespace default")
    assert handed_over(here) == []
    if not exists:
        await here.create_secret("keys", namespace=OWNER, **KEYS)
    await grant(here, NAMESPACE)
    await here.phase("Succeeded", "in", of=SAMPLEJOBS)
    assert handed_over(here) == [{"access-key": "AK", "secret-key": "SK"}]


async def test_a_job_whose_server_lost_it_is_not_given_keys_that_are_granted_no_more(here: SampleDataCluster) -> None:
    await here.create_set()
    await here.phase("Ready")
    await here.create_secret("keys", namespace=OWNER, **KEYS)
    await grant(here, NAMESPACE)
    del here.servers.ends["sync"]
    await here.create_job("in", "sync", secretRef=REFERENCE)
    await here.phase("Running", "in", of=SAMPLEJOBS)
    await grant(here, None)
    here.servers.orders.clear()
    await refused(here, SAMPLEJOBS, "in")
    assert handed_over(here) == []
    await grant(here, NAMESPACE)
    here.servers.ends["sync"] = done()
    await here.phase("Succeeded", "in", of=SAMPLEJOBS)


async def test_none_means_no_keys_whatever_another_namespace_calls_so(here: SampleDataCluster) -> None:
    await here.create_secret("none", namespace=OWNER, **KEYS)
    await here.create_set(source={"uri": "bos://bucket.endpoint/x", "secretRef": {"name": "none", "namespace": OWNER}})
    await here.phase("Ready")
    assert handed_over(here) == []
