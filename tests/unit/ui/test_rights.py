"""A viewer sees what the API server would list for that viewer, and nothing else of the shared watches."""

from __future__ import annotations

import pytest

from harness import eventually
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import NODES, PADDLEJOBS, PODS, SECRETS
from paddlecloud.local.apiserver.auth.authentication import service_account
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.platform import dashboard
from paddlecloud.ui.asked import Missing
from paddlecloud.ui.feed import JOB, Feed
from paddlecloud.ui.job_rows import row_of
from paddlecloud.ui.reader import Reader
from unit.ui import hostile
from unit.ui.world import Viewer, feed_of, stored


@pytest.fixture
async def jobs(admin: Client) -> None:
    for team in ("team-a", "team-b"):
        job = hostile.job(f"of-{team}")
        job["metadata"]["namespace"] = team
        pod = hostile.pod(job)
        await stored(admin, job, pod)


async def test_a_tenant_sees_its_own_namespace_and_no_other(
    feed: Feed, viewer: Viewer, member: Viewer, jobs: None
) -> None:
    for who, expected in ((viewer, {"team-a", "team-b"}), (member, {"team-a"})):
        reader = Reader(feed, who.session.rights)
        assert {job["metadata"]["namespace"] for job in await reader.objects(PADDLEJOBS)} == expected
        assert {key.namespace for key, _ in await reader.rows(PADDLEJOBS, row_of)} == expected
        assert await reader.objects(PADDLEJOBS, "team-b") == [] or "team-b" in expected
        found = await reader.by_index(PODS, JOB, "team-b/of-team-b")
        assert bool(found) == ("team-b" in expected)
        assert bool(await reader.get(PADDLEJOBS, "team-b", "of-team-b")) == ("team-b" in expected)
        assert bool(await reader.get(PADDLEJOBS, "team-a", "of-team-a"))


async def test_kinds_of_the_cluster_are_of_those_who_may_list_them(feed: Feed, member: Viewer) -> None:
    assert await Reader(feed, member.session.rights).objects(NODES) == []


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/", {}),
        ("/jobs", {}),
        ("/search", {"q": "of"}),
        ("/compare", {"objects": "team-a/of-team-a,team-b/of-team-a"}),
    ],
)
async def test_lists_name_nothing_of_others(member: Viewer, jobs: None, path: str, query: dict[str, str]) -> None:
    html = await member.html(path, query)
    assert "of-team-b" not in html
    assert path == "/" or "of-team-a" in html


async def test_a_comparison_says_of_what_others_have_no_more_than_of_what_is_not_there(
    member: Viewer, jobs: None
) -> None:
    for name in ("team-b/of-team-b", "team-b/nothing"):
        html = await member.html("/compare", {"objects": name})
        assert f"{name}: There is no such object, or you may not see it." in html


@pytest.mark.parametrize("suffix", ["", "/logs", "/yaml", "/curves"])
async def test_a_page_of_another_namespace_is_as_one_that_is_not_there(member: Viewer, jobs: None, suffix: str) -> None:
    for name in ("of-team-b", "nothing"):
        with pytest.raises(Missing):
            await member.html(f"/jobs/team-b/{name}{suffix}")


async def test_the_account_of_the_watches_reads_no_secrets(platform: ControlPlane) -> None:
    async with feed_of(platform.client(service_account("kube-system", dashboard.NAME))) as feed:
        collection = await feed.collection(SECRETS)
        assert collection.objects() == []


async def test_who_may_list_one_namespace_only_has_its_watches_there(platform: ControlPlane, jobs: None) -> None:
    """As `pdc dashboard` with the context of a tenant."""
    client = platform.client(service_account("team-a", "member"))
    feed = Feed(client, ["team-a"])
    try:
        reader = Reader(feed, Viewer(feed, client).session.rights)
        names = [job["metadata"]["name"] for job in await reader.objects(PADDLEJOBS)]
        assert names == ["of-team-a"]
    finally:
        await feed.close()


async def test_a_change_wakes_who_has_read_it_and_nobody_else(feed: Feed, viewer: Viewer, admin: Client) -> None:
    await stored(admin, hostile.job("read"), hostile.job("unread"))
    reader = Reader(feed, viewer.session.rights)
    await reader.get(PADDLEJOBS, "default", "read")
    with feed.subscription() as subscription:
        feed.follow(subscription, frozenset(reader.reads))
        labels = {"metadata": {"labels": {"new": "yes"}}}
        await admin.patch(PADDLEJOBS, "unread", labels, namespace="default")
        known = await feed.collection(PADDLEJOBS)
        await eventually(lambda: "new" in known.get("default", "unread")["metadata"]["labels"])
        assert not subscription.changed.is_set()
        await admin.patch(PADDLEJOBS, "read", labels, namespace="default")
        await eventually(subscription.changed.is_set)
