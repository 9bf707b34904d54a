"""What goes from the image cache by itself, and what stays."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from harness import eventually
from paddlecloud.kube.clock import FakeClock
from paddlecloud.local.images import garbage
from paddlecloud.local.images.garbage import ImageGarbageCollector
from paddlecloud.local.images.store import ImageStore

from .test_store import write_recipe


async def built(store: ImageStore, recipes: Path, name: str, *, age: float) -> Path:
    """The layer of an image whose recipe is gone, last used `age` seconds ago."""
    path = write_recipe(recipes, name, files={"/data": "data"})
    (path.parent / "data").write_text(name)
    store.reload()
    environment = await store.build(f"example.com/{name}:v1")
    assert environment.root is not None
    path.unlink()
    layer = environment.root.parent
    used = layer.stat().st_mtime - age
    os.utime(layer, (used, used))
    return layer


async def test_what_nobody_gives_uses_or_used_for_two_weeks_is_deleted(tmp_path: Path) -> None:
    recipes = tmp_path / "recipes"
    store = ImageStore(cache=tmp_path / "cache", folders=[recipes])
    long_ago = garbage.MAX_AGE + 60
    old, recent, running = [
        await built(store, recipes, name, age=age)
        for name, age in (("old", long_ago), ("recent", 60.0), ("running", long_ago))
    ]
    program = subprocess.Popen(["sleep", "60"], env={"PATH": f"{running}/venv/bin:{os.environ['PATH']}"})
    clock = FakeClock()
    work = asyncio.ensure_future(
        ImageGarbageCollector(ImageStore(cache=store.cache, folders=[recipes]), clock=clock).run()
    )
    try:
        await clock.advance(garbage.FIRST - 1)
        assert old.exists(), "a platform that starts has other things to do"
        await clock.advance(1)
        await eventually(lambda: not old.exists())
        assert (old.exists(), recent.exists(), running.exists()) == (False, True, True)
    finally:
        work.cancel()
        program.kill()
        program.wait()


@pytest.mark.parametrize("where", ["packages", "files"])
def test_a_layer_is_in_use_while_a_process_has_it_in_its_environment(tmp_path: Path, where: str) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "environ").write_bytes(f"A=b\0PATH=/bin:/c/{where}/abc/venv/bin:/d\0X=/c/other/x\0".encode())
    (tmp_path / "2").mkdir()  # ended meanwhile
    assert garbage.folders_in_use(Path("/c"), proc=str(tmp_path)) == [f"/c/{where}/abc"]
