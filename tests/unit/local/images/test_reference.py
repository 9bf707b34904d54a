"""Which recipe answers for which image."""

from __future__ import annotations

import pytest

from paddlecloud.local.images.reference import match_rank, parse_reference


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("nginx", "docker.io/library/nginx"),
        ("nginx:1.25", "docker.io/library/nginx:1.25"),
        ("team/app", "docker.io/team/app"),
        ("registry.example.com/team/app:v1", "registry.example.com/team/app:v1"),
        ("localhost:5000/app:v1", "localhost:5000/app:v1"),
        ("app@sha256:abc", "docker.io/library/app@sha256:abc"),
        ("r.example.com/a/b/c:x@sha256:abc", "r.example.com/a/b/c:x@sha256:abc"),
    ],
)
def test_references_are_written_out(text: str, full: str) -> None:
    assert str(parse_reference(text)) == full


@pytest.mark.parametrize(
    ("offered", "wanted", "rank"),
    [
        ("r.example.com/a/b:v1", "r.example.com/a/b:v1", 0),
        ("a/b:latest", "a/b", 0),
        ("r.example.com/a/b", "r.example.com/a/b:v9", 1),
        ("a/b:v1", "mirror.example.com/a/b:v1", 2),
        ("a/b", "mirror.example.com/a/b:v1", 3),
        ("a/b:v1", "a/b:v2", None),
        ("a/b:v1", "a/b", None),
        ("r.example.com/a/b:v1", "other.example.com/a/b:v1", None),
        ("a/b", "a/c", None),
        ("a/b:v1", "a/b:v1@sha256:abc", None),
        ("a/b", "a/b@sha256:abc", None),
        ("a/b@sha256:abc", "a/b@sha256:abc", 0),
        ("a/b@sha256:abc", "a/b:v1@sha256:abc", 0),
        ("a/b@sha256:abc", "a/b@sha256:def", None),
        ("a/b@sha256:abc", "a/b", None),
    ],
)
def test_the_most_specific_name_answers_best(offered: str, wanted: str, rank: int | None) -> None:
    assert match_rank(parse_reference(offered), parse_reference(wanted)) == rank
