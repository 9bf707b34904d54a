"""Keys in the store.

format.json                            which layout this is; also the object by which conditions are checked
versions/NAMESPACE/MODEL/VERSION.json  a manifest: the version exists if this does
blobs/SH/SHA256/COPY                   the bytes of a file; COPY is random, so that no key is used twice
condemned/SHA256/COPY                  a mark of the garbage collector: no push uses this copy any more
parts/NAMESPACE/SHA256/OFFSET          a part of a file that is being uploaded to the hub's server
clock/ID                               written and removed by the garbage collector to read the store's clock
drafts/ID                              in folders: what is being written
"""

from __future__ import annotations

FORMAT_KEY = "format.json"
FORMAT_CONTENT = b'{"layout": "paddlecloud-modelhub", "format": 1}\n'
VERSIONS, BLOBS, CONDEMNED, CLOCK, PARTS = "versions/", "blobs/", "condemned/", "clock/", "parts/"


def version(namespace: str, model: str, version: str) -> str:
    return f"{VERSIONS}{namespace}/{model}/{version}.json"


def copies(sha256: str) -> str:
    """The prefix of all copies of a file."""
    return f"{BLOBS}{sha256[:2]}/{sha256}/"


def blob(sha256: str, copy: str) -> str:
    return copies(sha256) + copy


def mark(sha256: str, copy: str) -> str:
    return f"{CONDEMNED}{sha256}/{copy}"


def parts(namespace: str, sha256: str) -> str:
    """The prefix of all parts of one upload."""
    return f"{PARTS}{namespace}/{sha256}/"


def place(key: str) -> tuple[str, str]:
    """Digest and copy of the key of a blob or of a mark."""
    sha256, copy = key.rsplit("/", 2)[-2:]
    return sha256, copy
