"""Names of images, and which recipe answers for which name. Pure.

A recipe answers for an image if one of its names matches. Rules, the most specific first:

1. the same reference, after both are written out (`nginx` is `docker.io/library/nginx:latest`);
2. the same repository, where the recipe's name has no tag: it answers for every tag;
3. as 1 and 2, but without the registry's host: a recipe for `paddle-operator/demo:v1` answers for every mirror.

A digest (`@sha256:…`) asks for exactly those layers. A recipe makes its own environment, so it answers only for a
digest that one of its names declares (`a/b@sha256:…`); as in Kubernetes, a tag beside a digest is ignored. `store` also
honours a digest that is the id of the environment itself.
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
    digest: str = ""
    """`sha256:…`; empty when the name has none."""

    @property
    def name(self) -> str:
        """The last part of the repository: what people call the image."""
        return self.repository.rpartition("/")[2]

    def __str__(self) -> str:
        tag, digest = (f":{self.tag}" if self.tag else ""), (f"@{self.digest}" if self.digest else "")
        return f"{self.host}/{self.repository}{tag}{digest}"

    def without_digest(self) -> Reference:
        return self._replace(digest="")


def parse_reference(text: str) -> Reference:
    rest, _, digest = text.strip().partition("@")
    head, slash, tail = rest.partition("/")
    if slash and ("." in head or ":" in head or head == "localhost"):
        host, rest = head, tail
    else:
        host = DEFAULT_HOST
    repository, _, tag = rest.rpartition(":") if ":" in rest.rpartition("/")[2] else (rest, "", "")
    if host == DEFAULT_HOST and "/" not in repository:
        repository = f"{DEFAULT_FOLDER}/{repository}"
    return Reference(host, repository, tag, digest)


def match_rank(offered: Reference, wanted: Reference) -> int | None:
    """How well a recipe's name answers for an image, smaller is better; None when it does not."""
    if offered.repository != wanted.repository or offered.digest != wanted.digest:
        return None
    same_host = offered.host == wanted.host
    if offered.tag and not wanted.digest and offered.tag != (wanted.tag or "latest"):
        return None
    if not same_host and offered.host != DEFAULT_HOST:
        return None
    return (0 if offered.tag or offered.digest else 1) + (0 if same_host else 2)
