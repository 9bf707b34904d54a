"""What the image of Paddle says by itself when a program imports it: nothing; the program's own warnings are shown."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from paddlecloud.local.images.store import ImageStore
from tools import paddle

PROGRAM = "import paddle, warnings; warnings.warn('mine'); print('done')"


@pytest.mark.parametrize("image", ["paddlecloud/paddle:3.3", "paddlecloud/model-suite:latest"])
def test_an_import_of_paddle_prints_nothing_and_the_programs_own_warnings_stay(image: str, tmp_path: Path) -> None:
    environment = asyncio.run(ImageStore().prepare(image))
    env = {**environment.env, "PATH": ":".join((*environment.path, "/usr/bin", "/bin")), "HOME": str(tmp_path)}
    python = paddle.interpreter(image)
    done = subprocess.run([python, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout == "done\n"
    assert done.stderr == "<string>:1: UserWarning: mine\n"
