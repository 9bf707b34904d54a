"""Every command shown in docs/cli.md, models.md, suites.md and their Chinese pages is run, in the order of the page.

A line may end in `# exits N` for the exit code it shows, or `# until Ctrl-C` for a command that goes on by itself. The
lines printed below a command must be in its output; `…` stands for anything.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

DOCS = Path(__file__).parents[2] / "docs"
ENGLISH, CHINESE = DOCS / "cli.md", DOCS / "cli.zh.md"
PAGES = pytest.mark.parametrize("page", [ENGLISH, CHINESE], ids=lambda page: page.name)
COMMANDS_OF = {
    ENGLISH: 50, CHINESE: 20, DOCS / "models.md": 25, DOCS / "models.zh.md": 25, DOCS / "tenants.md": 8,
    DOCS / "suites.md": 3, DOCS / "suites.zh.md": 3,
}  # fmt: skip
"""How many commands each page has at least."""
STARTED_ELSEWHERE = ("up", "down", "status")
"""These start and stop platforms; the fixture runs them for this very test."""


class Step(NamedTuple):
    line: int
    arguments: list[str]
    exits: int
    endless: bool
    shows: list[str]


def files(page: Path) -> dict[str, str]:
    return dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", page.read_text(), re.DOTALL))


def steps(page: Path) -> list[Step]:
    found: list[Step] = []
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            command, _, remark = line[2:].partition("    # ")
            exits = int(remark.removeprefix("exits ")) if remark.startswith("exits ") else 0
            words = shlex.split(command)
            assert words[0] == "pdc", f"line {number} shows another program"
            found.append(Step(number, words[1:], exits, remark == "until Ctrl-C", []))
        elif inside and found and not line.startswith(" "):
            found[-1].shows.append(line)
    return found


VARIES = ("ok ", "warn ", "fail ")
"""Findings of doctor: they depend on the machine."""


@pytest.mark.parametrize("page", COMMANDS_OF, ids=lambda page: page.name)
@pytest.mark.timeout(900)  # a hundred commands, one after the other
def test_every_command_of_the_page_does_what_it_shows(server: Any, namespace: str, tmp_path: Path, page: Path) -> None:
    for name, text in files(page).items():
        (tmp_path / name).write_text(text)
    environment = {**server.env, "XDG_CACHE_HOME": str(tmp_path / "cache"), "LC_ALL": "C.UTF-8"}
    ran = 0
    for step in steps(page):
        if step.arguments[0] in STARTED_ELSEWHERE:
            continue
        command = [sys.executable, "-m", "paddlecloud.cli.main", "-n", namespace, *step.arguments]
        shown = f"docs/{page.name}:{step.line}: pdc {shlex.join(step.arguments)}"
        if step.endless:
            code, out, err = interrupt(command, environment, tmp_path)
            assert code == 130, f"{shown} exited {code}\n{out}\n{err}"
        else:
            done = subprocess.run(
                command,
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=90,
                stdin=subprocess.DEVNULL,
            )
            out, err = done.stdout, done.stderr
            assert done.returncode == step.exits, f"{shown} exited {done.returncode}\n{out}\n{err}"
        assert "Traceback" not in err, shown
        for line in step.shows:
            if not line.startswith(VARIES):
                pattern = re.compile(re.escape(line).replace("…", ".*"))
                assert any(map(pattern.fullmatch, out.splitlines())), f"{shown} does not print {line!r} but\n{out}"
        ran += 1
    assert ran > COMMANDS_OF[page]


def interrupt(command: list[str], environment: dict[str, str], folder: Path) -> tuple[int, str, str]:
    """Ctrl-C after the first line."""
    child = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    return child.returncode, out, err


def test_every_command_is_on_the_page() -> None:
    from paddlecloud.cli.command_table import COMMANDS

    names = {command.name for command in COMMANDS}
    assert names <= {step.arguments[0] for step in steps(ENGLISH)}
    assert names == set(re.findall(r"^\| `pdc ([a-z-]+)` \|", CHINESE.read_text(), re.MULTILINE))


@PAGES
def test_the_table_of_exit_codes_is_complete(page: Path) -> None:
    from paddlecloud.cli.failures import MEANINGS

    rows = {int(code) for code in re.findall(r"^\| (\d+) \|", page.read_text(), re.MULTILINE)}
    assert rows == set(MEANINGS)
