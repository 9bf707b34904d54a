from __future__ import annotations

from pathlib import Path

import pytest

from unit.data.samples import COUNT, content


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "images").mkdir(parents=True)
    for number in range(COUNT):
        (folder / "images" / f"{number:03}.jpg").write_bytes(content(number))
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder
