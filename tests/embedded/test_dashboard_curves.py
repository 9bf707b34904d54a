"""Curves in the dashboard: while a job trains, after it has ended, and of two jobs in one plot."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from embedded.dashboard_tabs import go
from harness import Target, pdc
from tools.browser_page import Tab
from unit.budgets import inputs
from unit.visualdl import record_makers

pytestmark = [pytest.mark.timeout(300)]
TRAINS = """
import os, pathlib, struct, time
from paddlecloud.data import report
{makers}
folder = pathlib.Path("log")
folder.mkdir(exist_ok=True)
rate, at = float(os.environ["LR"]), int(time.time() * 1000)
with open(folder / f"vdlrecords.{{int(time.time())}}.log", "ab", buffering=0) as file:
    for step in range(10):
        file.write(scalar("train/loss", step, rate / (step + 1), at))
        report.progress(step=step + 1, total=10, loss=rate / (step + 1))
print("written", flush=True)
while not pathlib.Path("go").exists():
    time.sleep(0.1)
"""


def train(server: Target, namespace: str, name: str, rate: str, folder: Path) -> None:
    """A job that writes records as VisualDL does and goes on until the file `go` is there."""
    makers = "\n".join(
        map(inspect.getsource, (inputs.varint, inputs.field, record_makers.number, record_makers.single))
    )
    makers += inspect.getsource(record_makers.scalar) + inspect.getsource(record_makers.framed)
    folder.mkdir()
    (folder / "train.py").write_text(TRAINS.format(makers=makers))
    pdc(
        *("run", "--name", name, "-n", namespace, "-d", "--env", f"LR={rate}", "--", "python", "train.py"),
        env=server.env,
        cwd=folder,
    )


async def test_curves_of_a_job_that_trains_and_of_two_that_have_ended(
    tab: Tab, server: Target, namespace: str, tmp_path: Path
) -> None:
    train(server, namespace, "fast", "2", tmp_path / "fast")
    train(server, namespace, "slow", "1", tmp_path / "slow")
    await go(tab, f"/jobs/{namespace}/fast")
    await tab.sees("loss", "#live_plots")  # reported
    await tab.click(".tabs a[href$='/curves']")
    await tab.sees("train/loss", "#live_curves")  # read in its pod, without a reload
    await tab.sees("fast 0.2", "#live_curves")
    for folder in ("fast", "slow"):
        (tmp_path / folder / "go").touch()
        pdc("wait", f"pdj/{folder}", "--for=finished", "-n", namespace, env=server.env)
    await go(tab, f"/jobs?namespace={namespace}")
    for name in ("fast", "slow"):
        await tab.click(f"#pick-{namespace}-{name}")
    await tab.click("button[form=compare]")
    await tab.sees("fast", "table.compared")
    await tab.sees("[LR].value", "table.compared")
    await tab.sees("Read the records of VisualDL")
    await tab.click("main form[action='/-/curves'] button")
    both = "[...document.querySelectorAll('figure')].find((one) => one.innerText.startsWith('train/loss'))?.innerText"
    await tab.until(both, lambda seen: "fast 0.2" in (seen or "") and "slow 0.1" in seen)
    pods = pdc("get", "pods", "-n", namespace, "-o", "name", env=server.env).stdout
    assert "metrics" not in pods, "the pods that read are deleted"


async def test_a_visit_to_a_job_that_has_ended_makes_no_pod(
    tab: Tab, server: Target, namespace: str, tmp_path: Path
) -> None:

    pdc("run", "--name", "done", "-n", namespace, "--", "python", "-c", "pass", env=server.env)
    await go(tab, f"/jobs/{namespace}/done/curves")
    await tab.sees("no metric", "#live_curves")
    pods = pdc("get", "pods", "-n", namespace, "-o", "name", env=server.env).stdout
    assert "metrics" not in pods
