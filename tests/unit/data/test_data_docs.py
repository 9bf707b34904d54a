"""The code of docs/data.md runs as it stands, in both languages, and prints what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from paddlecloud.data.cache_folders import OWN
from tools import paddle

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("data.md", "data.zh.md")
BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<language>\w*)\n(?P<code>.*?)```", re.DOTALL)
COUNT = 48
PICTURES = """
import sys
import numpy as np
from PIL import Image
for number in range(int(sys.argv[1])):
    Image.fromarray(np.full((40, 40, 3), number, dtype="uint8")).save(f"{number}.jpg")
"""


def blocks(page: str) -> list[tuple[str, str, str]]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return [(found["file"] or "", found["language"], found["code"]) for found in BLOCK.finditer(text)]


def test_both_languages_show_the_same_code() -> None:
    assert blocks(PAGES[0]) == blocks(PAGES[1])


@pytest.mark.paddle
@pytest.mark.timeout(900)
def test_the_training_program_trains_and_finds_its_samples_in_the_cache(tmp_path: Path) -> None:
    (program,) = [code for file, _, code in blocks(PAGES[0]) if file == "train.py"]
    interpreter = paddle.interpreter()
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    subprocess.run([interpreter, "-c", PICTURES, str(COUNT)], cwd=data, check=True, timeout=60)
    (data / "train.txt").write_text("".join(f"{number}.jpg {number % 4}\n" for number in range(COUNT)))
    places = {"PADDLECLOUD_DATA_DIR": str(data), "PADDLECLOUD_CACHE_DIR": str(cache)}
    done = paddle.run(f"import os; os.chdir({str(data)!r})\n" + program, **places)
    lines = re.findall(r"epoch (\d): (\d+) hits, (\d+) misses", done.stdout)
    assert [int(line[0]) for line in lines] == [0, 1, 2], done.stderr[-2000:]
    assert all(int(hits) + int(misses) == COUNT for _, hits, misses in lines)
    assert lines[2] == ("2", str(COUNT), "0")
    assert sorted(path.name for path in cache.iterdir()) == sorted([OWN, *(f"{n}.jpg" for n in range(COUNT))])


def test_the_estimate_prints_what_the_page_shows() -> None:
    found = blocks(PAGES[0])
    (place,) = [
        number for number, (_, language, code) in enumerate(found) if "advise(" in code and language == "python"
    ]
    done = subprocess.run(
        [sys.executable, "-c", found[place][2]], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == found[place + 1][2]
