"""Every page of the dashboard for people with weak eyes, a screen reader or a keyboard alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from embedded.dashboard_tabs import go
from embedded.serving_world import paddleservice
from embedded.test_dashboard_pipelines import workflow
from harness import Target, pdc
from paddlecloud.kube.resource import NODES, SAMPLESETS
from paddlecloud.ui.action_table import ACTIONS
from paddlecloud.ui.pages import PAGES
from tools import axe
from tools.browser_page import Tab

pytestmark = [pytest.mark.timeout(600)]
FAILS = "print('epoch 1'); raise SystemExit(3)"


def of_each_kind(server: Target, namespace: str, folder: Path) -> None:
    """An object called `shown` of every kind that has a page."""
    (folder / "data").mkdir()
    (folder / "data" / "1.jpg").write_bytes(b"x" * 3000)
    (folder / "net.onnx").write_text("one")
    sample_set = {
        "apiVersion": SAMPLESETS.api_version, "kind": SAMPLESETS.kind, "metadata": {"name": "shown"},
        "spec": {"source": {"uri": f"file://{folder}/data"}},
    }  # fmt: skip
    spec = {"schedules": ["0 9 * * *"], "workflowSpec": workflow("shown")["spec"]}
    cron = {"apiVersion": "argoproj.io/v1alpha1", "kind": "CronWorkflow", "metadata": {"name": "shown"}, "spec": spec}
    for obj in (sample_set, workflow("shown"), cron, paddleservice("shown", "one", "two", canaryTrafficPercent=20)):
        pdc("apply", "-n", namespace, "-f", "-", env=server.env, input=json.dumps(obj))
    pdc("run", "--name", "shown", "-n", namespace, "-d", "--", "python", "-c", FAILS, env=server.env)
    pdc("model", "push", "shown", str(folder / "net.onnx"), "-n", namespace, env=server.env)
    pdc("wait", "pdj/shown", "--for=finished", "-n", namespace, check=False, env=server.env)


def addresses(namespace: str, node: str) -> list[str]:
    """Of every page, and of a form of every action."""
    named: dict[str, dict[str, str]] = {"modelversion": {"name": "shown.1"}, "node": {"name": node}}
    known = {"namespace": namespace, "name": "shown"}
    pages = [page.path.format(**{**known, **named.get(page.name, {})}) for page in PAGES]
    objects = {"jobs", "pipelines", "models"}
    actions = [f"/{section}/{namespace}/shown/do/{ACTIONS[section][1][-1].name}" for section in sorted(objects)]
    searches = ["/search?q=shown", f"/compare?objects={namespace}/shown,{namespace}/shown", "/jobs?q=nothing-of-it"]
    return [*pages, *searches, *actions, f"/models/{namespace}/shown/do/promote", "/no-such-page"]


async def test_no_page_breaks_a_rule_of_axe_in_any_language_or_colours(
    tab: Tab, server: Target, namespace: str, tmp_path: Path
) -> None:
    of_each_kind(server, namespace, tmp_path)
    nodes: Any = json.loads(pdc("get", NODES.plural, "-o", "json", env=server.env).stdout)
    broken: dict[str, list[str]] = {}
    for path in addresses(namespace, nodes["items"][0]["metadata"]["name"]):
        for language in ("en", "zh"):
            await tab.js(f"document.cookie = 'pdc-language={language}; path=/; SameSite=Strict'; true")
            await tab.dark(False)
            await go(tab, path)
            await tab.until("document.documentElement.lang", language)
            found = [f"{language} {each}" for each in await axe.violations(tab)]
            await tab.dark(True)
            found += [f"{language} dark {each}" for each in await axe.violations(tab, "color-contrast")]
            if found:
                broken[path] = found
    tab.errors.clear()  # the page that there is not answers 404, which browsers report
    assert [f"{path} {each}" for path, found in broken.items() for each in found] == []


async def test_with_the_keyboard_alone_a_failed_job_is_found_understood_and_run_again(
    tab: Tab, server: Target, namespace: str
) -> None:
    pdc("run", "--name", "breaks", "-n", namespace, "-d", "--", "python", "-c", FAILS, env=server.env)
    pdc("wait", "pdj/breaks", "--for=finished", "-n", namespace, check=False, env=server.env)
    await tab.press("/")
    await tab.until("document.activeElement.id", "search")
    await tab.press(*"breaks", "Enter")
    await tab.sees("breaks", "#live_found")
    await tab_to(tab, f"a[href='/jobs/{namespace}/breaks']")
    await tab.press("Enter")
    await tab.sees("exit code 3", "#live_why")
    await tab_to(tab, "a[href$='/logs']")
    await tab.press("Enter")
    await tab.sees("epoch 1", ".pane")
    await tab_to(tab, ".pane pre")  # long logs are scrolled
    await go(tab, f"/jobs/{namespace}/breaks")
    await tab_to(tab, ".actions a[href$='/retry']")
    await tab.press("Enter")
    await tab.sees(f"pdc retry paddlejob/breaks -n {namespace}")
    await tab.until("document.activeElement.textContent", "Run it")
    await tab.press("Enter")
    await tab.sees("Done")
    await tab.press("g", "p")
    await tab.sees("Pipelines", "h1")


async def tab_to(tab: Tab, selector: str) -> None:
    """By the key, as often as it takes; what has the focus shows it."""
    for _ in range(60):
        await tab.press("Tab")
        if await tab.js(f"document.activeElement.matches({json.dumps(selector)})"):
            outline = await tab.js("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", f"{selector} does not show that it has the focus"
            return
    raise AssertionError(f"{selector} is not reached by the key Tab")


async def test_the_first_key_leads_past_the_navigation_to_the_content(tab: Tab, server: Target) -> None:
    await go(tab, "/jobs")
    await tab.press("Tab")
    await tab.until("document.activeElement.className", "skip")
    await tab.press("Enter")
    await tab.until("document.activeElement.id", "content")
