"""The files of an image in a container: all of them, or not yet."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.local.kubelet.pod.files import _copy_whole


def test_a_copy_that_an_earlier_start_still_makes_is_not_taken_for_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "image"
    (source / "bin").mkdir(parents=True)
    (source / "bin" / "sh").write_text("shell")
    begun, go_on = threading.Event(), threading.Event()
    copytree = shutil.copytree

    def slow(*args: Any, **options: Any) -> Any:
        if threading.current_thread() is earlier:
            Path(args[1]).mkdir(parents=True, exist_ok=True)
            begun.set()
            go_on.wait()
        return copytree(*args, **options)

    monkeypatch.setattr(shutil, "copytree", slow)
    target = tmp_path / "pod" / "image"
    earlier = threading.Thread(target=_copy_whole, args=(source, target))
    earlier.start()
    begun.wait()
    _copy_whole(source, target)
    assert (target / "bin" / "sh").read_text() == "shell"
    go_on.set()
    earlier.join()
    assert [path.name for path in target.parent.iterdir()] == ["image"], "the second copy is gone"
