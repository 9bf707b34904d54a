"""The guide to PaddleJobs tells the truth: its commands are run and print what it shows, its tables are complete.

In shown lines `…` stands for what differs from run to run. The Chinese page shows the same commands and tables.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from harness import Target, until
from paddlecloud.api.paddlejob.status import PHASES
from paddlecloud.controllers.paddlejob.failure import cause
from paddlecloud.kube.resource import Object

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "paddlejob.md", DOCS / "paddlejob.zh.md")
CONTROLLER = Path(cause.__file__).parents[1]
PATIENT = ("explain", "events")
"""Commands that show what a job comes to: they are repeated until it has."""


def console(page: Path) -> list[tuple[list[str], list[str]]]:
    """Every command of a page and the lines shown below it."""
    steps: list[tuple[list[str], list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((shlex.split(line[2:]), []))
            else:
                steps[-1][1].append(line)
    return steps


def files(page: Path) -> dict[str, str]:
    return dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", page.read_text(), re.DOTALL))


def broken_jobs(page: Path) -> list[Object]:
    """The first example with the changes that the table of broken jobs names."""
    found = []
    table = page.read_text().split("<!-- jobs: broken -->")[1].split("\n\n")[0]
    for name, changes in re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE):
        job: Object = yaml.safe_load(files(page)["hello.yaml"])
        job["metadata"]["name"] = name
        container = job["spec"]["worker"]["template"]["spec"]["containers"][0]
        for change in re.findall(r"`([^`]+)`", changes):
            for field, value in yaml.safe_load(change).items():
                (container if field in ("command", "image", "resources") else job["spec"])[field] = value
        found.append(job)
    return found


def is_shown(pattern: str, output: str) -> bool:
    """Whether a line of the page is in the output; runs of spaces are as wide as the widest cell needs."""
    words = r"\s+".join(".*".join(map(re.escape, word.split("…"))) for word in pattern.split())
    return any(re.fullmatch(rf"\s*{words}\s*", line) for line in output.splitlines())


@pytest.mark.timeout(300)
def test_every_command_prints_what_the_page_shows(
    server: Target, namespace: str, kubectl_binary: str, tmp_path: Path
) -> None:
    page = PAGES[0]
    for name, text in files(page).items():
        (tmp_path / name).write_text(text)
    programs = {
        "kubectl": [kubectl_binary, "--namespace", namespace],
        "pdc": [sys.executable, "-m", "paddlecloud.cli.main", "--namespace", namespace],
    }
    env = {**server.env, "LC_ALL": "C.UTF-8"}

    def run(words: list[str], text: str | None = None) -> str:
        done = subprocess.run(
            [*programs[words[0]], *words[1:]],
            cwd=tmp_path, env=env, input=text, capture_output=True, text=True, timeout=90,
        )  # fmt: skip
        assert done.returncode == 0, f"{shlex.join(words)} exited {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    for job in broken_jobs(page):
        run(["kubectl", "apply", "-f", "-"], json.dumps(job))
    for words, shows in console(page):
        output = ""

        def agrees(words: list[str] = words, shows: list[str] = shows) -> bool:
            nonlocal output
            output = run(words)
            return all(is_shown(line, output) for line in shows)

        if agrees():
            continue
        assert words[1] in PATIENT, f"{shlex.join(words)} shows\n{output}\ninstead of\n" + "\n".join(shows)
        try:
            until(agrees, timeout=60, every=0.5)
        except AssertionError as error:
            raise AssertionError(f"{shlex.join(words)} shows\n{output}\ninstead of\n" + "\n".join(shows)) from error


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_phase_condition_event_and_class_of_failure_is_on_the_page(page: Path) -> None:
    source = "".join(path.read_text() for path in CONTROLLER.rglob("*.py"))
    events = set(re.findall(r'(?:PlannedEvent\(|record\(job, |REASON = |INVALID = )"(\w+)"', source))
    events |= set(re.findall(r'Obstacle\("\w+", "(\w+)"', source))
    conditions = set(re.findall(r'with_condition\(\s*[\w.]+, "(\w+)"', source)) | {"Running", "PodsReady", "Restarting"}
    classes = {*cause._POD_REASONS.values(), *cause._DISRUPTION_REASONS.values(), *cause.DISRUPTIONS}
    classes |= {*cause._CONTAINER_REASONS.values(), *(name for name, _ in cause._TEXTS), "UserError", "Killed"}
    classes |= {"Hung", "Image", cause.LATE}
    assert len(events) > 15
    rows = "\n".join(line for line in page.read_text().splitlines() if line.startswith("|"))
    missing = {name for name in (*events, *conditions, *classes, *PHASES) if f"`{name}`" not in rows}
    assert missing == set()


def test_the_chinese_page_shows_the_same_commands_files_and_names() -> None:
    english, chinese = PAGES
    assert console(chinese) == console(english)
    assert files(chinese) == files(english)
    assert broken_jobs(chinese) == broken_jobs(english)

    def named(page: Path) -> list[str]:
        """What the tables name in their first cells: fields, phases, conditions, events, classes, variables."""
        cells = [line.split(" | ")[0] for line in page.read_text().splitlines() if line.startswith("| `")]
        return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]

    assert named(chinese) == named(english)
