"""Every command of the README's first five minutes is run, in order, on the embedded platform, with real Paddle."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import Target, need

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "README.zh.md")
HEADINGS = {"README.md": ("Install", "In five minutes"), "README.zh.md": ("安装", "五分钟上手")}
ELSEWHERE = ("pip install", "pdc up")
"""The platform and the package are those of the test."""
BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)


def sections(page: Path) -> dict[str, str]:
    parts = re.split(r"^## (.+)\n", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def blocks(page: Path) -> list[tuple[str, str, str]]:
    text = "".join(sections(page)[heading] for heading in HEADINGS[page.name])
    return [(found["file"] or "", found["language"], found["text"]) for found in BLOCK.finditer(text)]


def test_both_pages_begin_with_the_same_commands_and_have_the_same_rows() -> None:
    assert blocks(PAGES[0]) == blocks(PAGES[1])
    for page in PAGES:
        assert tuple(sections(page))[:2] == HEADINGS[page.name], "what users do comes first"
    english, chinese = (re.findall(r"^\| ", page.read_text(), re.MULTILINE) for page in PAGES)
    assert len(english) == len(chinese)
    targets = [re.findall(r"^\| \[[^]]*\]\(([^)]*)\)", page.read_text(), re.MULTILINE) for page in PAGES]
    assert targets[0] == [target.replace(".zh.md", ".md") for target in targets[1]]


@pytest.mark.paddle
@pytest.mark.timeout(900)
def test_every_command_of_the_first_five_minutes_does_what_it_shows(
    embedded: Target, namespace: str, tmp_path: Path
) -> None:
    need("curl", have=shutil.which("curl") is not None, hint="apt-get install curl")
    for image in ("paddlecloud/paddle:3.3", "paddlecloud/runtime", "paddlecloud/serving:latest"):
        embedded.offer(image)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "pdc").write_text(f'#!/bin/sh\nexec {sys.executable} -m paddlecloud.cli.main -n {namespace} "$@"\n')
    (programs / "pdc").chmod(0o755)
    environment = {**embedded.env, "PATH": f"{programs}:{os.environ['PATH']}", "no_proxy": "*"}
    url, ran = "", []
    for file, language, text in blocks(PAGES[0]):
        if file:
            (tmp_path / file).write_text(text)
        for step in re.findall(r"^\$ (.*\n(?:(?!\$ ).*\n)*)", text, re.MULTILINE) if language == "console" else ():
            command, *shown = step.splitlines()
            if command.startswith(ELSEWHERE):
                continue
            done = subprocess.run(
                ["bash", "-c", f"URL={url}; {command}; code=$?; echo URL=$URL >&2; exit $code"],
                cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300,
            )  # fmt: skip
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
            parts = [part for line in shown for part in line.split("…")]  # of what is shown, … stands for the rest
            assert all(part in done.stdout for part in parts), f"{command}\n{done.stdout}\n{done.stderr}"
            url = done.stderr.rpartition("URL=")[2].strip()
            ran.append((command, done.stdout))
    (answer,) = [said for command, said in ran if "/prediction" in command]
    ((value,),) = next(iter(json.loads(answer)["result"].values()))
    assert 19 < value < 23, "it has learned y = 2x + 1"
