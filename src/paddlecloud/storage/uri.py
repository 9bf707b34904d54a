"""Addresses of data: `SCHEME://BUCKET[.ENDPOINT][/PREFIX]`. Pure.

The rules are those that SampleSets have always had: "://" exactly once, a known scheme, web addresses only for
archives. Credentials never belong into an address; one that carries some is refused, so that none can leak from here.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from paddlecloud.api.sampleset.validation import uri_problem
from paddlecloud.storage.errors import BadUri

WEB = ("http", "https")


class Location(NamedTuple):
    scheme: str
    host: str
    """`BUCKET[.ENDPOINT]` as it was written; empty for file."""
    path: str
    """What follows the host, without a leading slash; for file the absolute path."""

    @property
    def is_folder(self) -> bool:
        return self.path.endswith("/") or not self.path

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}{'' if self.scheme == 'file' or not self.path else '/'}{self.path}"


def parse(uri: str) -> Location:
    """Raises `BadUri` with a text that says how the address should look."""
    uri = uri.strip()
    if not uri:
        raise BadUri("the source is empty: say where the data comes from, as SCHEME://BUCKET[.ENDPOINT][/PREFIX]")
    if text := uri_problem(uri):
        raise BadUri(f"{_shown(uri)!r}: {text}")
    scheme, _, rest = uri.partition("://")
    if scheme == "file":
        return Location("file", "", "/" + rest.lstrip("/"))
    host, _, path = rest.partition("/")
    if "@" in host and scheme not in ("hdfs",):  # hdfs://user@host names a user, not a secret
        raise BadUri(f"the {scheme} address carries credentials: put them into a Secret with access-key and secret-key")
    if not host:
        raise BadUri(f"{uri!r} names no bucket or host")
    return Location(scheme, host, path.lstrip("/"))


def paired(source: str, destination: str) -> tuple[str, str]:
    """If one of the two ends with a slash, both do: otherwise one would name a folder and the other a file."""
    if source.endswith("/") != destination.endswith("/"):
        return source.rstrip("/") + "/", destination.rstrip("/") + "/"
    return source, destination


def _shown(uri: str) -> str:
    """For error messages: without what may be a secret before an @."""
    try:
        user = urlsplit(uri).username
    except ValueError:
        user = None
    return uri if user is None and "@" not in uri else "…@" + uri.rpartition("@")[2]
