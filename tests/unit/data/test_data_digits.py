"""The pictures that the demonstration caches: written, shared out among ranks and read back as they were."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from paddlecloud.data import Files

PROGRAMS = Path(__file__).parents[3] / "examples" / "programs"


def test_ranks_read_all_pictures_once_and_each_of_every_digit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROGRAMS))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import digits

    digits.write(tmp_path, 40, seed=1)
    shares = [digits.read(Files.walk(data=str(tmp_path)), rank, 2) for rank in range(2)]
    assert [sorted(set(labels)) for _, labels in shares] == [list(range(10))] * 2
    images, labels = digits.generate(40, seed=1)
    drawn = {(image.tobytes(), int(label)) for image, label in zip(images, labels, strict=True)}
    read = [
        (image.tobytes(), int(label)) for images, labels in shares for image, label in zip(images, labels, strict=True)
    ]
    assert len(read) == 40
    assert set(read) == drawn
    assert all(images.dtype == np.float32 for images, _ in shares)
