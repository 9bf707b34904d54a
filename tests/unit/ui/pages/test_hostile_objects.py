"""Every page, of objects whose every text is an attack, in both languages: nothing of it becomes markup."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import PADDLEJOBS, PODS, QUEUES
from paddlecloud.ui.pages import PAGES
from paddlecloud.ui.templates import FOLDER
from unit.ui import hostile
from unit.ui.hostile import ATTACK
from unit.ui.pages import objects
from unit.ui.world import Viewer, stored

NAMES = {"namespace": "default", "name": "words"}
"""Of the job, and of the node."""
QUERIES = {
    "search": {"q": "words"},
    "compare": {"objects": f"default/words,default/{ATTACK}", "of": ATTACK, "pick1": ATTACK},
}
NAMED = {"modelversion": {"name": "words.1"}}
FAILURE = {
    "time": "2026-09-21T14:01:00Z", "pod": "words-worker-0", "node": "n", "failureClass": "UserError", "exitCode": 3,
    "message": "Traceback\nboom", "action": "Restart",
}  # fmt: skip
STATUS = {
    "phase": "Failed", "reason": "BackoffLimitExceeded", "message": "words-worker-0 failed: UserError: boom",
    "startTime": "2026-09-21T14:00:10Z", "completionTime": "2026-09-21T14:02:00Z", "failures": [FAILURE],
    "progress": {"done": "1/2 (50%)", "step": 1, "totalSteps": 2, "loss": 0.5, "metrics": {"acc<b>": 0.5}},
    "checkpoint": {"path": "/ckpt", "time": "2026-09-21T14:01:00Z"},
    "worker": {"ready": "0/2"},
}  # fmt: skip


@pytest.fixture
async def poisoned(admin: Client) -> None:
    job = hostile.job(**hostile.poisoned(STATUS))
    await stored(admin, job)
    made = await admin.get(PADDLEJOBS, "words", "default")
    waiting = {"name": "train", "state": {"waiting": {"reason": "ImagePullBackOff", "message": f"no {ATTACK}"}}}
    pod = hostile.pod(made, phase="Pending", containerStatuses=[{**waiting, **_COUNTS}])
    owners = pod["metadata"]["ownerReferences"]
    await stored(admin, pod)
    owner = {"apiVersion": PADDLEJOBS.api_version, "blockOwnerDeletion": True, **owners[0]}
    await admin.patch(PODS, pod["metadata"]["name"], {"metadata": {"ownerReferences": [owner]}}, namespace="default")
    await stored(admin, hostile.event(made, f"Odd{ATTACK}"[:120], f"happened {ATTACK}"))
    lost = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": f"lost {ATTACK}"}
    room = {"cpu": "8", "memory": "16Gi", "pods": "10"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "words"}}
    await stored(admin, {**node, "status": {"conditions": [lost], "allocatable": room, "capacity": room}})
    queue = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": "words"}}
    await stored(admin, {**queue, "spec": {"weight": 1, "parent": f"words{ATTACK}"}})
    for obj in objects.poisoned():
        await stored(admin, obj)


_COUNTS = {"ready": False, "restartCount": 1, "image": "i", "imageID": ""}


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_what_users_write_arrives_as_text(language: str, viewer: Viewer, poisoned: None) -> None:
    for page in PAGES:
        path = page.path.format(**{**NAMES, **NAMED.get(page.name, {})})
        html = await viewer.html(path, QUERIES.get(page.name), language)
        found = hostile.check(html)
        for part in (await viewer.parts(path, language)).values():
            hostile.check(part)
        if page.name in SHOW_REASONS:
            assert ATTACK in " ".join(found.text.split()), f"{page.name} shows the text, as text"


SHOW_REASONS = {"overview", "jobs", "job", "nodes", "node", "services", "service", "samplesets", "sampleset"} | {
    "models",
    "model",
    "modelversion",
    "pipelines",
    "pipeline_run",
    "schedules",
    "search",
    "schedule",
}


async def test_a_search_is_shown_as_text(viewer: Viewer) -> None:
    hostile.check(await viewer.html("/jobs", {"q": ATTACK, "status": ATTACK, "sort": ATTACK, "namespace": ATTACK}))


TEMPLATES = sorted((FOLDER / "templates").glob("*.html"))
NEVER = {
    "a filter or tag that turns escaping off": re.compile(r"\|\s*safe\b|autoescape|Markup"),
    "an inline style or handler": re.compile(r"<[^>]*\s(style|on[a-z]+)\s*="),
    "an inline script or style": re.compile(r"<script(?![^>]*\ssrc=)|<style"),
    "an attribute without quotes": re.compile(r"<[a-z][^>\"]*(\"[^\"]*\"[^>\"]*)*\s[a-z-]+=(?!\")"),
    "an address that path() or static() did not make": re.compile(
        r"(href|src|action)=\"(?![/#]|{{ (path|static|page|list)\b)"
    ),
}


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name)
def test_no_template_goes_around_escaping(file: Path) -> None:
    text = file.read_text()
    assert {what: found[0] for what, rule in NEVER.items() if (found := rule.search(text))} == {}


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name)
def test_a_live_block_stands_in_the_element_of_its_name(file: Path) -> None:
    text = file.read_text()
    for name in re.findall(r"{% block (live_\w+) %}", text):
        assert re.search(rf'id="{name}"[^>]*>{{% block {name} %}}', text), f"{name} cannot be drawn anew"
