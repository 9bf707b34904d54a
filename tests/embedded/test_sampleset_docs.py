"""Every command of docs/sampleset.md is run, in the order of the page; the Chinese page shows the same ones."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness import Target

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "sampleset.md", DOCS / "sampleset.zh.md")


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def files(page: Path) -> dict[str, str]:
    found = re.findall(r"<!-- file: (\S+) -->\n```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return dict(found)


def test_both_pages_show_the_same_commands_and_files() -> None:
    assert commands(PAGES[0]) == commands(PAGES[1])
    bare = [{name: re.sub(r" +#.*", "", text) for name, text in files(page).items()} for page in PAGES]
    assert bare[0] == bare[1]


@pytest.mark.timeout(300)  # the image of the cache server is built on first use
def test_every_command_of_the_page_does_what_it_shows(
    server: Target, kubectl_binary: str, namespace: str, tmp_path: Path
) -> None:
    for name, text in files(PAGES[0]).items():
        (tmp_path / name).write_text(text)
    programs = {
        "kubectl": [kubectl_binary, "-n", namespace],
        "pdc": [sys.executable, "-m", "paddlecloud.cli.main", "-n", namespace],
    }
    for line in commands(PAGES[0]):
        command, _, remark = line.partition("    # exits ")
        program, *words = shlex.split(command)
        done = subprocess.run(
            [*programs[program], *words], cwd=tmp_path, env=server.env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == int(remark or 0), f"{line}\n{done.stdout}\n{done.stderr}"
