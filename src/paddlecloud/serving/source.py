"""Where a model comes from: a folder, an archive behind a URL, an object store, or a name in a model store.

    ./model_dir, file:///models/digits            as it is
    https://host/path/digits.tar.gz               fetched, checked, unpacked
    http://host/digits.tar.gz#sha256=HEX          the same; a digest stands in for TLS, and may follow https too
    s3://bucket/digits/3                          everything below, copied; bos://, oss:// and their like too
    digits:v3, digits                             ENDPOINT/model-center/digits/v3/digits.tar.gz
    ocr:7, with a grant in the environment        that version of the ModelHub (`modelhub.pod_access`)

`PADDLECLOUD_MODEL_ENDPOINT` names the model store; a `manifest.json` beside the archive, where there is one, holds its
sha256. For one that asks for a token, as the model hub does, `PADDLECLOUD_MODEL_HUB_TOKEN` has it: it is sent nowhere
else. Keys of object stores are in the environment under the names their own tools use (AWS_ACCESS_KEY_ID …).
Fetching itself is `paddlecloud.storage`'s. What was fetched is kept under its address: a restart does not fetch again.

What nobody vouches for is refused: an archive over plain http without a digest, unless the deployer allows it
(`--allow-plain-http`). The model store is the deployer's own choice, whatever its URL. Code in a fetched model is
another matter (`processing`): only a folder that the deployer names is trusted to hold code.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import tempfile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urlsplit

from paddlecloud.modelhub import pod_access
from paddlecloud.modelhub.pod_access import PodAccess
from paddlecloud.serving.errors import ModelError

log = logging.getLogger(__name__)

ENDPOINT = "PADDLECLOUD_MODEL_ENDPOINT"
TOKEN = "PADDLECLOUD_MODEL_HUB_TOKEN"  # noqa: S105 - the name of a variable
BUCKET = "model-center"
_DIGEST = re.compile(r"sha256=([0-9a-f]{64})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(:[A-Za-z0-9][A-Za-z0-9._-]*)?")
_WEB = ("http", "https")


class ModelFolder(NamedTuple):
    folder: Path
    fetched: bool
    """Whether its content came from elsewhere, so that the deployer has not seen it."""


def local_folder(reference: str, cache: Path, *, plain_http: bool = False) -> ModelFolder:
    """The folder of the model, fetched if need be; `ModelError` says what is wrong with the reference."""
    access = pod_access.from_environment(os.environ)
    if access is not None and access.shown == reference:
        return ModelFolder(_of_hub(access, cache), fetched=True)
    if "://" in reference:
        place = urlsplit(reference)
        if place.scheme == "file":
            return ModelFolder(Path(unquote(place.path)), fetched=False)
        if place.scheme == "http" and not place.fragment and not plain_http:
            raise ModelError(
                f"{reference} comes over plain http, where anybody on the way can change it: use https, append "
                "#sha256=HEX of the archive, or allow it with allowPlainHttp of the PaddleService (--allow-plain-http)"
            )
        return ModelFolder(_fetched(reference, cache), fetched=True)
    if "/" in reference or Path(reference).is_dir():
        return ModelFolder(Path(reference), fetched=False)
    if not _NAME.fullmatch(reference):
        raise ModelError(f"{reference!r} is neither a folder, a URL nor NAME:VERSION")
    endpoint = os.environ.get(ENDPOINT)
    if not endpoint:
        raise ModelError(
            f"{reference!r} is a name in a model store: set {ENDPOINT} to the store's URL, or give a folder"
        )
    name, _, version = reference.partition(":")
    address = f"{endpoint.rstrip('/')}/{BUCKET}/{name}/{version or 'latest'}/{name}.tar.gz"
    return ModelFolder(_fetched(address, cache, os.environ.get(TOKEN, "")), fetched=True)


def _of_hub(access: PodAccess, cache: Path) -> Path:
    """Held until the process ends, so that nobody removes it from the node meanwhile."""
    from paddlecloud.modelhub import node_folder  # only who fetches pays for it
    from paddlecloud.modelhub.errors import Damaged, HubError
    from paddlecloud.modelhub.granted_version import GrantedVersion
    from paddlecloud.storage.errors import StorageError

    try:
        held = node_folder.hold(cache, access.digest, GrantedVersion(access))
    except (HubError, StorageError) as error:
        look = f"; `pdc model verify {access.shown}` shows what is damaged" if isinstance(error, Damaged) else ""
        raise ModelError(f"{access.shown} cannot be fetched: {error}{look}") from error
    origin = f"{held.fetched:,} bytes came from the hub" if held.fetched else "its files were on the node"
    log.info("%s is in %s: %s", access.shown, held.folder, origin)
    return held.folder


def _fetched(address: str, cache: Path, token: str = "") -> Path:
    place = cache / hashlib.sha256(address.encode()).hexdigest()[:16]
    if place.is_dir():
        return _inner(place)
    from paddlecloud.storage.errors import StorageError  # only who fetches pays for it: starts from zero do not

    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as draft:
        model = Path(draft) / "model"
        try:
            if urlsplit(address).scheme in _WEB:
                _unpack(address, Path(draft), model, token)
            else:
                _copy(address, Path(draft), model)
        except StorageError as error:
            raise ModelError(str(error)) from error
        try:
            model.rename(place)
        except OSError:
            if not place.is_dir():  # somebody else fetched the same
                raise
    return _inner(place)


def _unpack(address: str, draft: Path, target: Path, token: str) -> None:
    from paddlecloud.storage.archive import fetch, unpack

    url, fragment = urldefrag(address)
    asked = _DIGEST.fullmatch(fragment)
    if fragment and asked is None:
        raise ModelError(f"{address}: what follows # must be sha256= and 64 hexadecimal digits")
    if not url.endswith((".tar.gz", ".tgz", ".tar", ".zip")):
        raise ModelError(f"{url} is no .tar.gz archive of a model")
    digest = fetch(url, draft / "archive", token)
    expected, says = (asked[1], "the reference asks for") if asked else (_announced(url, token), "its manifest says")
    if expected and expected != digest:
        raise ModelError(f"{url} has sha256 {digest}, {says} {expected}: fetched damaged, or changed")
    unpack(draft / "archive", target, name=url)


def _copy(address: str, draft: Path, target: Path) -> None:
    """Everything below an address in an object store."""
    from paddlecloud.storage import credentials, uri
    from paddlecloud.storage.archive import inside
    from paddlecloud.storage.sources import open_source

    location = uri.parse(address)
    keys = credentials.from_environment(location.scheme, os.environ)
    source = open_source(location, keys, environment=os.environ)
    if source is None:
        raise ModelError(f"{address}: models are fetched from http(s), S3 and stores with its API, not from there")
    for entry in source.entries():
        file = inside(target, entry.key or location.path.rpartition("/")[2])
        if entry.is_folder or entry.key.endswith("/"):
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as output:
            for piece in source.read(entry):
                output.write(piece)
    if not target.exists():
        raise ModelError(f"there is nothing at {address}; check bucket and prefix")


def _announced(url: str, token: str) -> str:
    """The sha256 in the manifest beside the archive; empty where there is none."""
    from paddlecloud.storage.archive import open_web
    from paddlecloud.storage.errors import StorageError

    try:
        with open_web(f"{url.rpartition('/')[0]}/manifest.json", token) as answer:
            content = json.loads(answer.read(1 << 20))
    except (OSError, ValueError, RecursionError, StorageError):
        return ""
    return str(content.get("sha256") or "") if isinstance(content, dict) else ""


def _inner(place: Path) -> Path:
    """Archives often hold one folder and nothing else."""
    entries = list(place.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else place
