"""Tags of suite images: the published grammar, for branches of any name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.local.images.reference import parse_reference
from paddlecloud.local.images.suite_tags import LONGEST, branch_part, suite_tag

TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
RELEASES = st.tuples(st.integers(0, 99), st.integers(0, 99))
BRANCHES = st.text(st.sampled_from("abcXYZ019._-/ +#é"), min_size=1, max_size=60)
BASES = st.sampled_from(
    ["3.3.1", "2.3.0-gpu-cuda10.2-cudnn7", "2.3.0-gpu-cuda11.2-cudnn8", "latest-dev-rocm4.0-miopen2.11"]
)
COMMITS = st.text(st.sampled_from("0123456789abcdef"), min_size=6, max_size=40)


@pytest.mark.parametrize(
    ("branch", "base", "commit", "tag"),
    [
        ("release/2.5", "2.3.0-gpu-cuda10.2-cudnn7", "efbb0a7d", "2.5-gpu-cuda10.2-cudnn7-efbb0a"),
        ("release/2.5", "2.3.0", "efbb0a", "2.5-cpu-efbb0a"),
        ("release/2.10", "3.3.1", "", "2.10-cpu-latest"),
        ("develop", "latest-dev-rocm4.0-miopen2.11", "", "develop-dev-rocm4.0-miopen2.11-latest"),
        ("feature/new neck", "3.3.1", "", "feature-new-neck-cpu-latest"),
    ],
)
def test_tags_are_those_of_the_published_images(branch: str, base: str, commit: str, tag: str) -> None:
    assert suite_tag(branch, base, commit) == tag


@given(RELEASES, BASES, COMMITS)
def test_a_release_keeps_its_whole_number(release: tuple[int, int], base: str, commit: str) -> None:
    number = f"{release[0]}.{release[1]}"
    assert suite_tag(f"release/{number}", base, commit).startswith(f"{number}-")


@given(RELEASES, RELEASES, BASES, COMMITS)
def test_two_releases_never_share_a_tag(one: tuple[int, int], other: tuple[int, int], base: str, commit: str) -> None:
    tags = {suite_tag(f"release/{major}.{minor}", base, commit) for major, minor in (one, other)}
    assert len(tags) == len({one, other})


@given(BRANCHES, BASES, st.one_of(st.just(""), COMMITS))
def test_every_branch_makes_a_tag_that_registries_take_or_is_refused(branch: str, base: str, commit: str) -> None:
    if not re.search(r"[A-Za-z0-9_]", branch.removeprefix("release/")):
        with pytest.raises(ValueError, match="is no branch"):
            suite_tag(branch, base, commit)
        return
    tag = suite_tag(branch, base, commit)
    assert TAG.fullmatch(tag)
    assert parse_reference(f"paddlecloud/paddleocr:{tag}").tag == tag


@pytest.mark.parametrize("branch", ["", "release/", "é", "/"])
def test_what_is_no_branch_is_refused(branch: str) -> None:
    with pytest.raises(ValueError, match="is no branch"):
        branch_part(branch)


def test_a_tag_that_is_too_long_and_a_commit_that_is_none_are_refused() -> None:
    with pytest.raises(ValueError, match=f"{LONGEST} are allowed"):
        suite_tag("x" * 120, "3.3.1", "abcdef")
    with pytest.raises(ValueError, match="'main' is no commit"):
        suite_tag("develop", "3.3.1", "main")
