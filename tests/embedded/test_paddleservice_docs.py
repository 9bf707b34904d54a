"""Every command of docs/paddleservice.md is run, in the order of the page; the Chinese page shows the same ones."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import Target, need
from unit.serving import models

PAGES = Path(__file__).parents[2] / "docs"
ENGLISH, CHINESE = PAGES / "paddleservice.md", PAGES / "paddleservice.zh.md"


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"```(yaml|console)\n(.*?)```", page.read_text(), re.DOTALL)


def test_both_pages_show_the_same_commands_and_files() -> None:
    assert blocks(ENGLISH) == blocks(CHINESE)


@pytest.mark.timeout(300)
def test_every_command_of_the_page_does_what_it_shows(
    embedded: Target, kubectl_binary: str, namespace: str, tmp_path: Path
) -> None:
    need("curl", have=shutil.which("curl") is not None, hint="apt-get install curl")
    for name, text in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", ENGLISH.read_text(), re.DOTALL):
        (tmp_path / name).write_text(text)
    models.linear(tmp_path / "model")
    embedded.offer("paddlecloud/serving:latest")
    programs = {
        "pdc": f'exec {sys.executable} -m paddlecloud.cli.main -n {namespace} "$@"',
        "kubectl": f'exec {kubectl_binary} -n {namespace} "$@"',
    }
    for name, line in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    environment = {**embedded.env, "PATH": f"{tmp_path}:{os.environ['PATH']}", "no_proxy": "*"}
    ran = 0
    for kind, text in blocks(ENGLISH):
        for step in re.findall(r"^\$ (.*\n(?:(?!\$ ).*\n)*)", text, re.MULTILINE) if kind == "console" else ():
            command, *shown = step.splitlines()
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=90
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
            for line in shown:
                assert line in done.stdout, f"{command} did not print {line!r}:\n{done.stdout}"
            ran += 1
    assert ran > 12
