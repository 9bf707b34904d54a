"""Runs of pipelines in the dashboard: the graph while it runs, why one failed, logs of a step, and every button."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from embedded.dashboard_tabs import go
from harness import Target, pdc
from tools.browser_page import Tab

pytestmark = [pytest.mark.timeout(300)]


def workflow(name: str) -> dict[str, Any]:
    """`first` waits for a person, then `second` fails unless its parameter is good."""
    text = {"name": "text", "value": "{{workflow.parameters.text}}"}
    steps = [
        [{"name": "first", "template": "wait"}],
        [{"name": "second", "template": "say", "arguments": {"parameters": [text]}}],
    ]
    say = {
        "name": "say",
        "inputs": {"parameters": [{"name": "text"}]},
        "container": {
            "image": "busybox",
            "command": ["sh", "-c", 'echo "said $0"; test "$0" = good', "{{inputs.parameters.text}}"],
        },
    }
    return {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name},
        "spec": {
            "entrypoint": "main",
            "arguments": {"parameters": [{"name": "text", "value": "bad"}]},
            "templates": [{"name": "main", "steps": steps}, {"name": "wait", "suspend": {}}, say],
        },
    }  # fmt: skip


async def press_button(tab: Tab, action: str, command: str) -> None:
    await tab.click(f".actions a[href$='/{action}']")
    await tab.sees(command)
    await tab.click("main form[method=post] button")
    await tab.sees("Done")


async def test_a_run_waits_is_resumed_fails_and_runs_again_with_another_value(
    tab: Tab, server: Target, namespace: str
) -> None:
    pdc("apply", "-n", namespace, "-f", "-", env=server.env, input=json.dumps(workflow("flow")))
    await go(tab, f"/pipelines?namespace={namespace}")
    await tab.sees("first", "#live_list")  # why it waits
    await tab.click("#live_list th a[href$='/flow']")
    await tab.sees("first", "#live_graph")
    await tab.sees("pdc pipeline resume flow", "#live_why")
    await press_button(tab, "resume", f"pdc pipeline resume flow -n {namespace}")
    await go(tab, f"/pipelines/{namespace}/flow")
    await tab.sees("Failed", "#live_headline")
    await tab.sees("second", "#live_graph")
    assert await tab.js("document.querySelectorAll('svg.graph a').length") == 2
    assert await tab.js("document.querySelectorAll('svg.graph path').length") == 1, "second follows first"
    await tab.sees("second: main: Error (exit code 1): said bad", "#live_why")
    await tab.click("svg.graph a.failed")
    await tab.until("location.hash.startsWith('#step-')")
    await tab.click("#live_steps tr:target summary")
    await tab.sees("input text", "#live_steps tr:target dl")
    await tab.click("#live_steps tr:target a[href*='/logs']")
    await tab.sees("said bad", ".pane")
    await go(tab, f"/pipelines/{namespace}/flow")
    await tab.sees("Retry what failed", "#live_headline")
    await tab.click(".actions a[href$='/resubmit']")
    await tab.click("input[name='p.text']")
    await tab.js("document.querySelector('input[name=\"p.text\"]').select()")
    await tab.press(*"good", "Enter")
    await tab.sees(f"pdc pipeline resubmit flow -d --parameter=text=good -n {namespace}")
    await tab.click("main form[method=post] button")
    await tab.sees("Done")
    await go(tab, f"/pipelines?namespace={namespace}&sort=-age")
    await tab.until("document.querySelectorAll('#live_list tbody tr').length", 2)
    await tab.click("#live_list tbody th a:not([href$='/flow'])")
    await press_button(tab, "stop", "pdc pipeline stop")


async def test_a_schedule_is_suspended_and_leads_to_its_runs(
    tab: Tab, server: Target, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({**workflow("flow"), "metadata": {"generateName": "flow-"}}))
    pdc("pipeline", "schedule", str(file), "--every", "1s", "--name", "often", "-n", namespace, env=server.env)
    await go(tab, f"/pipelines?namespace={namespace}")
    await tab.click("main a[href^='/schedules']")
    await tab.sees("@every 1s", "#live_list")
    await tab.click("#live_list th a[href$='/often']")
    await tab.sees("often-", "#live_runs")  # the run that it began
    await press_button(tab, "suspend", f"pdc suspend cronworkflow/often -n {namespace}")
    await go(tab, f"/schedules/{namespace}/often")
    await tab.sees("Suspended", "#live_headline")
    await press_button(tab, "delete", f"pdc delete cronworkflow/often --cascade=orphan -n {namespace}")
    runs = pdc("pipeline", "ls", "-n", namespace, env=server.env).stdout
    assert "often-" in runs, "its runs stay"
