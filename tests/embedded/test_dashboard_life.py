"""A page of the dashboard that stays open while a job fails, the dashboard is gone, or the token is not accepted."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from embedded.dashboard_tabs import address, go, run
from harness import Kubectl, Target, pdc
from tools.browser_page import Browser, Tab

pytestmark = [pytest.mark.timeout(300)]
FAILS_ONCE = """
import pathlib, time
from paddlecloud.data import report
first = not pathlib.Path("failed").exists()
for step in range(1, 4):
    report.progress(step=step, total=3, loss=1 / step)
print("first attempt" if first else "second attempt", flush=True)
pathlib.Path("failed").touch()
if first:
    while not pathlib.Path("fail").exists():
        time.sleep(0.1)
    raise SystemExit(7)
while not pathlib.Path("end").exists():
    time.sleep(0.1)
"""


async def test_a_job_starts_trains_fails_and_restarts_while_its_page_is_open(
    tab: Tab, server: Target, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(FAILS_ONCE)
    await go(tab, f"/jobs?namespace={namespace}")
    pdc(
        *("run", "--name", "again", "-n", namespace, "-d", "--retries", "1", "--", "python", "train.py"),
        env=server.env,
        cwd=tmp_path,
    )
    await tab.click("#live_list th a[href$='/again']")
    await tab.js("window.same = true")
    await tab.sees("Running", "#live_headline")
    await tab.sees("3/3", "#live_progress")
    await tab.sees("loss", "#live_plots")
    (tmp_path / "fail").touch()
    await tab.sees("Exit code 7", "#live_failures")
    await tab.sees("first attempt", "#live_failures")  # what it printed last
    await tab.sees("Running", "#live_headline")
    await tab.sees("restarting", "#live_timeline")
    (tmp_path / "end").touch()
    await tab.sees("Completed", "#live_headline")
    assert await tab.js("window.same") is True, "the page was not loaded again"


async def test_when_the_dashboard_is_gone_the_page_says_so_and_then_how_to_come_back(
    tab: Tab, server: Target, platform_data: Path, namespace: str
) -> None:
    """Sessions are in its memory: who was signed in signs in again."""
    await go(tab, "/jobs")
    await tab.sees("live", "#live")
    os.kill(dashboard_of(platform_data), signal.SIGKILL)
    await tab.sees("connection lost", "#live")
    await tab.sees("Sign in", "h1")  # it was started again
    run(server, namespace, "meanwhile", "--", "python", "-c", "pass")
    await tab.open(address(server))
    await go(tab, f"/jobs?namespace={namespace}")
    await tab.sees("meanwhile", "#live_list")
    tab.errors.clear()  # what the browser says of connections that broke


async def test_a_page_that_was_offline_shows_what_happened_meanwhile(tab: Tab, server: Target, namespace: str) -> None:
    await go(tab, f"/jobs?namespace={namespace}")
    await tab.sees("live", "#live")
    await hidden(tab, True)
    run(server, namespace, "meanwhile", "--", "python", "-c", "pass")
    assert "meanwhile" not in await tab.text("#live_list")
    await hidden(tab, False)
    await tab.sees("meanwhile", "#live_list")
    await tab.sees("live", "#live")


async def test_who_is_not_accepted_any_more_is_asked_to_sign_in(
    chromium: Browser, server: Target, namespace: str, kubectl: Kubectl
) -> None:
    """A token that the API server refuses, whether it has expired or its account is gone."""
    pdc("apply", "-n", namespace, "-f", "-", env=server.env, input=ACCOUNT)
    binding = ACCOUNT_MAY_VIEW.replace("NAMESPACE", namespace)
    pdc("apply", "-n", namespace, "-f", "-", env=server.env, input=binding)
    token = kubectl("create", "token", "viewer").stdout.strip()
    async with chromium.tab() as tab:
        await tab.open(address(server).partition("?")[0])
        await tab.sees("Sign in", "h1")
        await tab.click("input[name=token]")
        await tab.js(f"document.querySelector('input[name=token]').value = {token!r}")
        await tab.press("Enter")
        await tab.sees("live", "#live")
        assert token not in await tab.js("location.href + document.cookie")
        pdc("delete", "serviceaccount", "viewer", "-n", namespace, "-y", env=server.env)
        await tab.sees("does not accept your token any more")


ACCOUNT = '{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "viewer"}}'
ACCOUNT_MAY_VIEW = """
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: viewer, namespace: NAMESPACE}]
"""


async def hidden(tab: Tab, on: bool) -> None:
    """As a browser reports it of a tab that is put behind others."""
    await tab.js(
        f"Object.defineProperty(document, 'hidden', {{configurable: true, get: () => {str(on).lower()}}});"
        "document.dispatchEvent(new Event('visibilitychange')); true"
    )


def dashboard_of(data: Path) -> int:
    """The process of the platform's dashboard."""
    found = [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit() and _is_dashboard(folder, str(data))
    ]
    assert len(found) == 1, found
    return found[0]


def _is_dashboard(process: Path, data: str) -> bool:
    try:
        words = (process / "cmdline").read_bytes().decode().split("\0")
    except OSError:
        return False  # it has ended
    return "paddlecloud.ui" in words and any(data in word for word in words)
