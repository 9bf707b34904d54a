"""Names of images, and which recipe answers for which name. Pure.

A recipe answers for an image if one of its names matches. Rules, the most specific first:

1. the same reference, after both are written out (`nginx` is `docker.io/library/nginx:latest`);
2. the same repository, where the recipe's name has no tag: it answers for every tag;
3. as 1 and 2, but without the registry's host: a recipe for `paddle-operator/demo:v1` answers for every mirror.

A digest (`@sha256:…`) is ignored: local environments are addressed by what their recipe says, not by someone's layers.
"""

from __future__ import annotations

from typing import NamedTuple

DEFAULT_HOST = "docker.io"
DEFAULT_FOLDER = "library"


class Reference(NamedTuple):
    host: str
    repository: str
    tag: str
    """Empty when the name has none."""

    @property
    def name(self) -> str:
        """The last part of the repository: what people call the image."""
        return self.repository.rpartition("/")[2]

    def __str__(self) -> str:
        return f"{self.host}/{self.repository}" + (f":{self.tag}" if self.tag else "")


def parse_reference(text: str) -> Reference:
    rest = text.strip().partition("@")[0]
    head, slash, tail = rest.partition("/")
    if slash and ("." in head or ":" in head or head == "localhost"):
        host, rest = head, tail
    else:
        host = DEFAULT_HOST
    repository, _, tag = rest.rpartition(":") if ":" in rest.rpartition("/")[2] else (rest, "", "")
    if host == DEFAULT_HOST and "/" not in repository:
        repository = f"{DEFAULT_FOLDER}/{repository}"
    return Reference(host, repository, tag)


def match_rank(offered: Reference, wanted: Reference) -> int | None:
    """How well a recipe's name answers for an image, smaller is better; None when it does not."""
    if offered.repository != wanted.repository:
        return None
    same_host = offered.host == wanted.host
    if offered.tag and offered.tag != (wanted.tag or "latest"):
        return None
    if not same_host and offered.host != DEFAULT_HOST:
        return None
    return (0 if offered.tag else 1) + (0 if same_host else 2)
