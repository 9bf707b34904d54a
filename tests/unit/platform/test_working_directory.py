"""What others put into the folder in which a command is started does not run with the rights of its caller.

`python -m` and `python -c` look there before the standard library. Everybody may write to some folders, such as /tmp.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config
from paddlecloud.kube.stdlib import StdlibTransport
from paddlecloud.local.images import builder
from paddlecloud.local.kubelet.node.zygote_client import ZygoteClient
from paddlecloud.sdk.compiling import CompileError, compile_file
from paddlecloud.ui import actions
from paddlecloud.ui.sessions import Identity

NAMES = ("argparse", "asyncio", "difflib", "json", "kfp", "logging", "paddlecloud", "pip", "runpy", "venv", "warnings")


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that exists once a module of the working directory was imported."""
    folder, mark = tmp_path / "shared", tmp_path / "ran"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r} + ' ')\n")
    monkeypatch.chdir(folder)
    return mark


def test_a_pipeline_is_compiled_with_what_is_beside_its_file_alone(ran: Path, tmp_path: Path) -> None:
    pipeline = tmp_path / "pipeline.py"
    pipeline.write_text("import beside\n")
    with pytest.raises(CompileError):  # there is no kfp, or no pipeline in it
        compile_file(pipeline, python=sys.executable)
    assert not ran.exists()


async def test_images_are_built_without_the_working_directory(ran: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    await builder.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], lines.append)
    assert not ran.exists()


async def test_an_action_of_the_dashboard_runs_without_the_working_directory(ran: Path, tmp_path: Path) -> None:
    config = Config("https://127.0.0.1:1")
    flags = ("--kubeconfig", str(tmp_path / "none"))
    identity = Identity("ada", config, Client(StdlibTransport(config)), flags)
    done = await actions.run(identity, ["delete", "paddlejob/train"], "default")
    assert not ran.exists()
    assert "none" in done.output
    assert not done.ok


async def test_programs_of_pods_are_forked_without_the_working_directory(ran: Path) -> None:
    zygote = ZygoteClient()
    try:
        assert await asyncio.wait_for(zygote.start(), 60)
    finally:
        await zygote.stop()
    assert not ran.exists()
