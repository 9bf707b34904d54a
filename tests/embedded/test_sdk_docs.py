"""Every block of docs/sdk.md and docs/sdk.zh.md runs, in order, as one program would, unless it starts a platform."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import Target

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "sdk.md", DOCS / "sdk.zh.md"]
BLOCK = re.compile(r"(?:<!-- (?P<note>[^>]*) -->\n)?```python\n(?P<code>.*?)```", re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(found["note"] or "", found["code"]) for found in BLOCK.finditer(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_the_page_runs(server: Target, namespace: str, tmp_path: Path, page: Path) -> None:
    program = []
    for note, code in blocks(page):
        if note.startswith("file: "):
            (tmp_path / note.removeprefix("file: ")).write_text(code)
        elif not note.startswith("not here"):
            program.append(code)
    assert len(program) > 6
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        server.kubeconfig.read_text().replace('"namespace": "default"', f'"namespace": "{namespace}"')
    )
    assert namespace in kubeconfig.read_text()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(program)],
        env={**server.env, "KUBECONFIG": str(kubeconfig)}, cwd=tmp_path, capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stderr == ""
    for line in ("worker-0 rank 0 of 2", "Completed Collective", "{'lr': '0.1'}", "hello", "Completed"):
        assert line in done.stdout.splitlines(), done.stdout
