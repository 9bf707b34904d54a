"""The dashboard of the embedded platform in a real browser, signed in by `pdc dashboard`.

Pages that are open while jobs start, print, fail and are suspended; both languages, dark colours, the keyboard, no
scripts.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from embedded.dashboard_tabs import address, go, run
from embedded.serving_world import paddleservice
from harness import Target, pdc
from paddlecloud.kube.resource import SAMPLESETS
from tools import browser_page
from tools.browser_page import Browser, Tab

pytestmark = [pytest.mark.timeout(300)]
PRINTS = """
import itertools, os, pathlib, threading
print('rank', os.environ['PADDLE_TRAINER_ID'], '<b id="bold">markup</b>', flush=True)
while not pathlib.Path('/tmp/go').exists():
    threading.Event().wait(0.2)
"""


async def test_a_job_starts_prints_and_is_suspended_while_its_pages_are_open(
    tab: Tab, server: Target, namespace: str
) -> None:
    assert "code=" not in await tab.js("location.href"), "the code has left the address"
    await go(tab, f"/jobs?namespace={namespace}")
    run(server, namespace, "words", "--workers", "2", "--", "python", "-c", PRINTS)
    await tab.sees("words", "#live_list")  # without a reload
    await tab.sees("Running", "#live_list")
    await tab.click("#live_list th a[href$='/words']")
    await tab.sees("worker-1", "#live_ranks")
    await tab.sees("running", "#live_timeline")
    await tab.click(".tabs a[href$='/logs']")
    for rank in ("worker-0", "worker-1"):
        await tab.sees(f"rank {rank[-1]} <b", f".pane[data-rank={rank}]")
    assert await tab.js("document.querySelector('#bold')") is None, "what a program prints is text"
    await go(tab, f"/jobs/{namespace}/words")
    await tab.click(".actions a[href$='/suspend']")
    await tab.sees(f"pdc suspend paddlejob/words -n {namespace}")
    await tab.click("main form button")
    await tab.sees("Done")
    await go(tab, f"/jobs/{namespace}/words")
    await tab.sees("Suspended", "#live_headline")
    await tab.sees("Resume", "#live_headline")


async def test_a_job_that_fails_says_why_on_the_first_page_and_what_it_printed_on_its_own(
    tab: Tab, server: Target, namespace: str
) -> None:
    attack = "print('<img src=x onerror=document.title=1>'); raise SystemExit(3)"
    run(server, namespace, "breaks", "--", "python", "-c", attack)
    await tab.sees("breaks", "#live_attention")
    await tab.sees("exit code 3", "#live_attention")
    await go(tab, f"/jobs/{namespace}/breaks")
    await tab.sees("<img src=x onerror", "#live_failures")
    await tab.sees("UserError", "#live_failures")
    assert await tab.js("document.title") != "1"
    assert await tab.js("document.querySelector('main img')") is None


async def test_a_job_that_no_node_can_take_says_what_it_needs_and_what_is_free(
    tab: Tab, server: Target, namespace: str
) -> None:
    run(server, namespace, "large", "--cpu", "500", "--", "python", "-c", "pass")
    await go(tab, f"/jobs/{namespace}/large")
    await tab.sees("cpu 500", "#live_why")
    printed = pdc("explain", "pdj/large", "-n", namespace, env=server.env).stdout
    verdict = printed.splitlines()[1].strip()
    await tab.sees(verdict, "#live_why")


async def test_a_line_moves_when_its_first_is_done(tab: Tab, server: Target, namespace: str) -> None:
    name = f"q-{namespace}"
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name},
        "spec": {"capability": {"cpu": "300m"}},
    }  # fmt: skip
    pdc("apply", "-f", "-", env=server.env, input=json.dumps(queue))
    await go(tab, "/queues")
    for job in ("a-first", "b-second", "c-third"):
        pdc("apply", "-n", namespace, "-f", "-", env=server.env, input=json.dumps(_queued(job, name)))
    card = f"section[aria-label='{name}']"
    await tab.sees("2 waiting", card)
    await tab.sees("may use 300m cpu", card)
    pdc("delete", "pdj", "a-first", "-n", namespace, "-y", env=server.env)
    await tab.sees("1 waiting", card)
    await tab.press("g", "n")
    await tab.sees("Nodes", "h1")
    await tab.click("#live_list tbody a")
    await tab.sees("b-second-worker-0", "#live_pods")
    await tab.click(f"#live_pods a[href='/jobs/{namespace}/b-second']")
    await tab.sees("b-second", "h1")
    pdc("delete", "queue", name, "-y", env=server.env)


def _queued(name: str, queue: str) -> dict[str, Any]:
    container = {"name": "train", "image": "busybox", "command": ["sleep", "600"]}
    container["resources"] = {"requests": {"cpu": "200m"}}  # type: ignore[assignment]
    return {
        "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": name},
        "spec": {
            "schedulingPolicy": {"queue": queue},
            "worker": {"replicas": 1, "template": {"spec": {"containers": [container]}}},
        },
    }  # fmt: skip


async def test_both_languages_dark_colours_and_the_keyboard(tab: Tab, server: Target) -> None:
    await tab.press("g", "j")
    await tab.sees("Jobs", "h1")
    await tab.sees("live", "#live")
    await tab.press("/")
    await tab.until("document.activeElement.id", "search")
    await tab.press("z", "Enter")
    await tab.until("location.search", "?q=z")
    await tab.sees("live", "#live")
    await tab.press("?")
    await tab.until("document.getElementById('keys').open")
    await tab.press("Escape")
    light = await tab.js("getComputedStyle(document.body).backgroundColor")
    await tab.dark(True)
    assert await tab.js("getComputedStyle(document.body).backgroundColor") != light
    await tab.dark(False)
    await tab.click("button[name=theme]")
    await tab.until("document.documentElement.dataset.theme", "dark")
    assert await tab.js("getComputedStyle(document.body).backgroundColor") != light
    await tab.click("button[name=language]")
    await tab.sees("搜索：z", "h1")
    assert await tab.js("document.documentElement.lang") == "zh"
    await tab.click("button[name=language]")
    await tab.sees("Search: z", "h1")


async def test_without_scripts_pages_are_read_and_logs_are_a_link_away(
    chromium: Browser, server: Target, namespace: str
) -> None:
    run(server, namespace, "plain", "--", "python", "-c", "print('seen without scripts')")
    pdc("wait", "pdj/plain", "--for=finished", "-n", namespace, env=server.env)
    async with chromium.tab() as tab:
        await tab.without_scripts()
        await tab.open(address(server))
        await tab.sees("Overview", "h1")
        await go(tab, f"/jobs/{namespace}/plain")
        await tab.sees("Completed")
        await go(tab, f"/jobs/{namespace}/plain/logs?full=1")
        await tab.sees("seen without scripts")


async def test_an_address_that_was_used_says_so(chromium: Browser, server: Target, tmp_path: Path) -> None:
    used = address(server)
    async with chromium.tab() as tab:
        await tab.open(used)
        await tab.sees("Overview", "h1")
    async with browser_page.running(tmp_path / "another") as other, other.tab() as tab:
        await tab.open(used)
        await tab.sees("was used already")


async def test_with_another_context_it_runs_here_with_the_rights_of_that_context(
    chromium: Browser, server: Target, namespace: str, tmp_path: Path
) -> None:
    """Of a user who may look at one namespace alone, and change nothing there."""
    run(server, namespace, "mine", "--", "python", "-c", "pass")
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "looks", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "looker"}],
    }  # fmt: skip
    pdc("apply", "-f", "-", env=server.env, input=json.dumps(binding))
    config = json.loads(server.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = "looker"
    config["contexts"][0]["context"]["namespace"] = namespace
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    command = [sys.executable, "-m", "paddlecloud.cli.main", "dashboard", "--kubeconfig", str(tmp_path / "kubeconfig")]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().strip()
        async with chromium.tab() as tab:
            await tab.open(url)
            await tab.sees("live", "#live")
            await go(tab, "/jobs")
            await tab.sees("mine", "#live_list")
            assert await tab.js("document.querySelectorAll('#live_list tbody tr').length") == 1
            await go(tab, f"/jobs/{namespace}/mine/do/delete")
            await tab.click("main form button")
            await tab.sees("It failed")
            await tab.sees("looker")
    finally:
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0


async def test_a_canary_is_promoted_from_the_page_of_its_service(tab: Tab, server: Target, namespace: str) -> None:
    service = paddleservice("ocr", "one", "two", canaryTrafficPercent=20, service={"minScale": 1})
    pdc("apply", "-n", namespace, "-f", "-", env=server.env, input=json.dumps(service))
    await go(tab, f"/services?namespace={namespace}")
    await tab.sees("canary 20 %", "#live_list")
    await tab.click("#live_list th a[href$='/ocr']")
    await tab.sees("20 % canary", "#live_traffic")
    await tab.sees("ocr-canary", "#live_revisions")
    await tab.click(".actions a[href$='/promote']")
    await tab.sees(f"pdc promote ocr -n {namespace}")
    await tab.sees("canary: null", "pre")
    await tab.click("main form button")
    await tab.sees("Done")
    await go(tab, f"/services/{namespace}/ocr")
    await tab.sees("100 % default", "#live_traffic")


async def test_a_sample_set_says_how_far_it_is_filled_and_who_uses_it(
    tab: Tab, server: Target, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "1.jpg").write_bytes(b"x" * 3000)
    kind = {"apiVersion": SAMPLESETS.api_version, "kind": SAMPLESETS.kind, "metadata": {"name": "photos"}}
    sample_set = {**kind, "spec": {"source": {"uri": f"file://{tmp_path}/photos"}}}
    pdc("apply", "-n", namespace, "-f", "-", env=server.env, input=json.dumps(sample_set))
    await go(tab, f"/samplesets?namespace={namespace}")
    await tab.click("#live_list th a[href$='/photos']")
    await tab.sees("photos", "h1")
    await tab.sees(f"{tmp_path}/photos", "#live_filling")
    await tab.sees("photos-runtime-0", "#live_placement")
    await tab.sees("No job has reported", "#live_reads")


async def test_a_version_is_promoted_and_rolled_back_from_the_page_of_its_model(
    tab: Tab, server: Target, namespace: str, tmp_path: Path
) -> None:
    for content in ("one", "two"):
        (tmp_path / "net.onnx").write_text(content)
        pdc(
            "model", "push", "ocr", str(tmp_path / "net.onnx"), "--origin", "job=train", "-n", namespace, env=server.env
        )
    pdc("model", "promote", "ocr:1", "-n", namespace, env=server.env)
    await go(tab, f"/models?namespace={namespace}")
    await tab.sees("production → 1", "#live_list")
    await tab.click("#live_list tbody th a")
    await tab.sees("ocr", "h1")
    await tab.click("#live_versions tbody tr:first-child td:last-child a")
    await tab.sees("--to=production")
    await tab.click("input[name=reason]")
    await tab.press(*"better")
    await tab.press("Enter")
    await tab.sees(f"pdc model promote ocr:2 --to=production --reason=better -n {namespace}")
    await tab.click("main form[method=post] button")
    await tab.sees("Done")
    await tab.click("main a[href*='/do/rollback']")
    await tab.sees(f"pdc model rollback ocr@production -n {namespace}")
    await go(tab, f"/models/{namespace}/ocr")
    await tab.sees("better", "#live_aliases")
    pdc("model", "rollback", "ocr@production", "-n", namespace, env=server.env)
    await tab.sees("rolled back", "#live_history")  # without a reload
    await tab.click("#live_aliases tbody tr:first-child td a")
    await tab.sees("train", "#live_lineage")
