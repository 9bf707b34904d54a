"""Keeps the state of this release for all later ones: run once, before its tag.

    python tests/tools/keep.py

A small platform lives, its log is kept as `tests/data/v<version>/state.db.xz`, and `tests/embedded/test_upgrade.py`
opens it from then on. A kept state is never written anew: it is what users of that release have on their disks.
"""

from __future__ import annotations

import asyncio
import lzma
import sys
import tempfile
from pathlib import Path

import yaml

import paddlecloud
from paddlecloud.api import crd
from paddlecloud.kube.resource import CONFIGMAPS, PADDLEJOBS, Object
from paddlecloud.local.control_plane import ControlPlane

TESTS = Path(__file__).parents[1]
KEPT = TESTS / "data"
JOB = TESTS.parent / "examples" / "manual" / "wide-and-deep.yaml"


def place(version: str) -> Path:
    return KEPT / f"v{version}" / "state.db.xz"


async def live(data: Path) -> None:
    """Everything a log can hold: what was made, changed and deleted, and an object of a kind of our own."""
    platform = ControlPlane(data)
    await platform.start(objects=crd.generate())
    try:
        client = platform.client(user_agent="keep")
        for name in ("kept", "gone"):
            await client.create(CONFIGMAPS, _config(name), namespace="default")
        await client.patch(CONFIGMAPS, "kept", {"data": {"a": "2"}}, namespace="default")
        await client.delete(CONFIGMAPS, "gone", namespace="default")
        await client.create(PADDLEJOBS, yaml.safe_load(JOB.read_text()), namespace="default")
    finally:
        await platform.stop()


def _config(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}


def main() -> int:
    target = place(paddlecloud.__version__)
    if target.exists():
        print(f"{target} is kept already; a new release has a new version", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        asyncio.run(live(data))
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(lzma.compress((data / "state.db").read_bytes()))
    print(f"{target} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
