"""The search over everything: by name, label and reason, of all kinds."""

from __future__ import annotations

import re

import pytest

from paddlecloud.kube.client import Client
from paddlecloud.ui.pages.search import MOST
from unit.ui import hostile
from unit.ui.pages import objects
from unit.ui.world import Viewer, stored


@pytest.fixture
async def world(admin: Client) -> None:
    """Besides the objects of all kinds, which are called `words`."""
    for obj in objects.poisoned():
        await stored(admin, obj)
    await stored(admin, hostile.job("words"), hostile.job("words-2"))
    await stored(admin, hostile.job("other", phase="Failed", reason="OOMKilled", message="words were too many"))


def found(html: str) -> list[str]:
    """Links to pages of objects, in their order."""
    main = html.partition("<h1>")[2]
    return re.findall(r'<th scope="row"><a href="([^"]+)"', main)


async def test_all_kinds_are_searched_and_names_come_before_reasons(viewer: Viewer, world: None) -> None:
    hits = found(await viewer.html("/search", {"q": "words"}))
    assert hits[:3] == ["/jobs/default/words", "/jobs/default/words-2", "/jobs/default/other"]
    sections = {hit.split("/")[1] for hit in hits}
    assert sections == {"jobs", "pipelines", "schedules", "services", "models", "modelversions", "samplesets"}


@pytest.mark.parametrize("text", ["oomkilled", "TOO many", "other", "team=vision other"])
async def test_reasons_and_labels_are_found_in_any_case(viewer: Viewer, world: None, text: str) -> None:
    assert found(await viewer.html("/search", {"q": text})) == ["/jobs/default/other"]


async def test_of_many_the_list_has_the_rest(viewer: Viewer, admin: Client) -> None:
    await stored(admin, *(hostile.job(f"many-{place}") for place in range(MOST + 3)))
    html = await viewer.html("/search", {"q": "many"})
    assert len(found(html)) == MOST
    assert '<a href="/jobs?q=many">3 more</a>' in html


@pytest.mark.parametrize("query", [{}, {"q": ""}, {"q": "nothing of it"}, {"q": "words", "namespace": "elsewhere"}])
async def test_without_a_match_nothing_is_listed(viewer: Viewer, world: None, query: dict[str, str]) -> None:
    assert found(await viewer.html("/search", query)) == []
