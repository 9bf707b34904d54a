"""Where a model comes from: a folder, an archive behind a URL, or a name and version in a model store.

    ./model_dir, file:///models/digits            as it is
    https://host/path/digits.tar.gz               fetched, checked, unpacked
    digits:v3, digits                             ENDPOINT/model-center/digits/v3/digits.tar.gz

`PADDLECLOUD_MODEL_ENDPOINT` names the store; a `manifest.json` beside the archive, where there is one, holds its
sha256. Unpacked models are kept by content of their reference, so a restart does not fetch again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tarfile
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote, urlsplit

from paddlecloud.serving.errors import ModelError

ENDPOINT = "PADDLECLOUD_MODEL_ENDPOINT"
BUCKET = "model-center"
PATIENCE = 60.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(:[A-Za-z0-9][A-Za-z0-9._-]*)?")


def local_folder(reference: str, cache: Path) -> Path:
    """The folder of the model, fetched if need be; `ModelError` says what is wrong with the reference."""
    scheme = urlsplit(reference).scheme
    if scheme == "file":
        return Path(unquote(urlsplit(reference).path))
    if scheme in ("http", "https"):
        return _fetched(reference, cache)
    if "/" in reference or Path(reference).is_dir():
        return Path(reference)
    if not _NAME.fullmatch(reference):
        raise ModelError(f"{reference!r} is neither a folder, a URL nor NAME:VERSION")
    endpoint = os.environ.get(ENDPOINT)
    if not endpoint:
        raise ModelError(
            f"{reference!r} is a name in a model store: set {ENDPOINT} to the store's URL, or give a folder"
        )
    name, _, version = reference.partition(":")
    return _fetched(f"{endpoint.rstrip('/')}/{BUCKET}/{name}/{version or 'latest'}/{name}.tar.gz", cache)


def _fetched(url: str, cache: Path) -> Path:
    if not url.endswith((".tar.gz", ".tgz", ".tar")):
        raise ModelError(f"{url} is no .tar.gz archive of a model")
    cache.mkdir(parents=True, exist_ok=True)
    place = cache / hashlib.sha256(url.encode()).hexdigest()[:16]
    if place.is_dir():
        return _inner(place)
    with tempfile.TemporaryDirectory(dir=cache) as draft:
        archive = Path(draft) / "archive"
        digest = _download(url, archive)
        expected = _announced(url)
        if expected and expected != digest:
            raise ModelError(
                f"{url} has sha256 {digest[:12]}…, its manifest says {expected[:12]}…: fetched damaged, or changed"
            )
        unpacked = Path(draft) / "model"
        _unpack(archive, unpacked, url)
        try:
            unpacked.rename(place)
        except OSError:
            if not place.is_dir():  # somebody else fetched the same
                raise
    return _inner(place)


def _download(url: str, target: Path) -> str:
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer, target.open("wb") as file:  # noqa: S310 - http(s)
            while block := answer.read(1 << 20):
                digest.update(block)
                file.write(block)
    except urllib.error.HTTPError as error:
        raise ModelError(f"{url} answers {error.code} {error.reason}") from error
    except OSError as error:
        raise ModelError(f"{url} cannot be fetched: {getattr(error, 'reason', error)}") from error
    return digest.hexdigest()


def _announced(url: str) -> str:
    """The sha256 in the manifest beside the archive; empty where there is none."""
    try:
        with urllib.request.urlopen(f"{url.rpartition('/')[0]}/manifest.json", timeout=PATIENCE) as answer:  # noqa: S310
            content = json.loads(answer.read(1 << 20))
    except (OSError, ValueError):
        return ""
    return str(content.get("sha256") or "") if isinstance(content, dict) else ""


def _unpack(archive: Path, target: Path, url: str) -> None:
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(target, filter="data")  # nothing outside, no devices, no foreign owners
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ModelError(f"{url} cannot be unpacked: {error}") from error


def _inner(place: Path) -> Path:
    """Archives often hold one folder and nothing else."""
    entries = list(place.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else place
