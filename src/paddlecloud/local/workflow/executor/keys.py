"""Keys of artifacts as paths below a folder.

A key is a text of tenants: any characters, `..`, empty parts. Each part becomes one name, without another meaning to
the file system; equal keys have equal paths and different keys different ones.
"""

from __future__ import annotations

import hashlib
from urllib.parse import quote

LONGEST_KEY = 1024
"""Bytes, as in S3."""
_LONGEST_NAME = 200
_PLAIN = " !#$&'()+,-.=@[]^_`{}~"


def key_problem(key: str) -> str:
    """Why a key cannot be stored; nothing where it can."""
    if not key.strip("/"):
        return "the key of an artifact is empty"
    if len(key.encode(errors="surrogatepass")) > LONGEST_KEY:
        return f"the key of an artifact is longer than {LONGEST_KEY:,} bytes: {key[:60]}…"
    return ""


def names_of(key: str) -> tuple[str, ...]:
    """The parts of the path, from the folder that has all keys."""
    return tuple(_name(part) for part in key.strip("/").split("/"))


def _name(part: str) -> str:
    if part in ("", ".", ".."):
        return "%" + part.replace(".", "%2E")
    name = quote(part, safe=_PLAIN, errors="surrogatepass")
    if len(name) > _LONGEST_NAME:
        return name[:_LONGEST_NAME].rsplit("%", 1)[0][:150] + "%" + hashlib.sha256(name.encode()).hexdigest()
    return name


def record_name(key: str) -> str:
    """The name of the file that says what is stored under a key."""
    return hashlib.sha256(key.strip("/").encode(errors="surrogatepass")).hexdigest() + ".json"
