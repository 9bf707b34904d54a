"""Which server really answers for an address: object stores' own names, and a map for servers of plain http and for
machines without internet.

`PADDLECLOUD_ENDPOINTS` (or the file it names with a leading @) holds pairs `SCHEME://HOST=URL`, by comma or line:

    bos://paddleflow-public.hkg.bcebos.com=http://127.0.0.1:8333/paddleflow-public
    bos://*.bj.bcebos.com=http://mirror:8333
    minio://127.0.0.1:9000=http://127.0.0.1:9000

A URL with a path names the bucket; without one the bucket's own name is kept. Pure but for reading that file.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from paddlecloud.storage.errors import BadUri
from paddlecloud.storage.uri import Location

VARIABLE = "PADDLECLOUD_ENDPOINTS"

S3_SCHEMES = frozenset({"s3", "minio", "bos", "oss", "cos", "obs", "ks3", "wasabi", "scw", "space", "eos"})
"""Stores with the API of S3; the rest is left to JuiceFS."""
_DEFAULT_ENDPOINT = {"s3": "s3.amazonaws.com", "wasabi": "s3.wasabisys.com"}


class Bucket(NamedTuple):
    """A bucket on an S3 server."""

    endpoint: str
    """With its protocol; empty means Amazon's own."""
    name: str
    prefix: str


def rewrites(environment: Mapping[str, str]) -> dict[str, str]:
    """The map from the environment. Raises `BadUri` for what is no pair."""
    text = environment.get(VARIABLE, "")
    if text.startswith("@"):
        text = Path(text[1:]).read_text()
    found = {}
    for item in filter(None, (part.strip() for part in text.replace("\n", ",").split(","))):
        address, equals, url = item.partition("=")
        if not equals or "://" not in address or urlsplit(url).scheme not in ("http", "https"):
            raise BadUri(f"{VARIABLE}: {item!r} is not SCHEME://HOST=http(s)://HOST[:PORT][/BUCKET]")
        found[address.rstrip("/")] = url.rstrip("/")
    return found


def bucket_of(location: Location, *, rewritten: Mapping[str, str], https: bool = True) -> Bucket:
    """Where an S3 address lies. Exact entries of the map win over `*.` ones, the longest first."""
    bucket, _, domain = location.host.partition(".")
    for address in sorted(rewritten, key=len, reverse=True):
        scheme, _, host = address.partition("://")
        if scheme != location.scheme:
            continue
        if host == location.host or (host.startswith("*.") and domain and host[2:] == domain):
            url = urlsplit(rewritten[address])
            own_server = _is_server(location)
            first, _, rest = location.path.partition("/")
            name = url.path.strip("/") or (first if own_server else bucket)
            return Bucket(f"{url.scheme}://{url.netloc}", name, rest if own_server else location.path)
    protocol = "https" if https else "http"
    if _is_server(location):
        name, _, prefix = location.path.partition("/")
        if not name:
            raise BadUri(f"{location} names a server but no bucket: {location.scheme}://HOST:PORT/BUCKET[/PREFIX]")
        return Bucket(f"{protocol}://{location.host}", name, prefix)
    if location.scheme == "bos" and domain and not domain.startswith("s3."):
        domain = f"s3.{domain}"  # the same store under the name where it has the API of S3
    domain = domain or _DEFAULT_ENDPOINT.get(location.scheme, "")
    if not domain:
        raise BadUri(f"{location} names no endpoint: {location.scheme}://BUCKET.ENDPOINT[/PREFIX]")
    return Bucket(f"{protocol}://{domain}", bucket, location.path)


def _is_server(location: Location) -> bool:
    """An address with a port, a numeric one or localhost names a server; its path begins with the bucket."""
    name, _, port = location.host.partition(":")
    if port or location.scheme == "minio" or name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
