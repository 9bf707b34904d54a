"""Which keys a sync takes. The first rows are the examples in JuiceFS' own help."""

from __future__ import annotations

import pytest

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
        ([], ["[[:digit:]]*"], ["1st", "first"], ["first"]),
        ([], ["[!a]*"], ["abc", "xyz"], ["abc"]),
        ([], [r"\*x*"], ["*xy", "axy"], ["axy"]),
    ],
)
def test_rules_decide_prefix_by_prefix(
    include: list[str], exclude: list[str], keys: list[str], taken: list[str]
) -> None:
    selection = Selection(include=include, exclude=exclude)
    assert [key for key in keys if selection.takes(key)] == taken


def test_a_range_of_keys_includes_both_ends() -> None:
    selection = Selection(start="b", end="d")
    assert [key for key in "abcde" if selection.takes(key)] == ["b", "c", "d"]


@pytest.mark.parametrize("pattern", ["/", "", "[z-a]x"])
def test_a_pattern_that_cannot_match_is_refused(pattern: str) -> None:
    with pytest.raises(BadOptions, match="pattern"):
        Selection(exclude=[pattern])
