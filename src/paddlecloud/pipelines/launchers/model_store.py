"""Where models are kept: `ENDPOINT/model-center/MODEL/VERSION/MODEL.tar.gz`, on an S3 server or in a folder.

The layout is the original's, so its addresses keep working. `manifest.json` beside a model has its digest. The
bucket stays private: the original made it readable by anybody. A version is overwritten when it is uploaded again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.storage.credentials import Credentials, redact
from paddlecloud.storage.sources import object_store_client, s3_store

BUCKET = "model-center"
MANIFEST = "manifest.json"
CHUNK = 1 << 20


def key(model: str, version: str) -> str:
    return f"{model}/{version}/{model}.tar.gz"


def uri(endpoint: str, model: str, version: str) -> str:
    return f"{endpoint.rstrip('/')}/{BUCKET}/{key(model, version)}"


def upload(
    endpoint: str, file: Path, model: str, version: str, keys: Credentials, *,
    origin: Mapping[str, str] | None = None, hub_version: str = "",
) -> str:  # fmt: skip
    """Store a packed model; returns its address. `origin` is where it came from, for its manifest, and `hub_version`
    what the ModelHub calls it."""
    if not file.is_file():
        raise StepFailed(f"{file} does not exist; the model's name must be that of the training step")
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while piece := content.read(CHUNK):
            digest.update(piece)
    manifest = {
        "name": model,
        "version": version,
        "sha256": digest.hexdigest(),
        "size": file.stat().st_size,
        "created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **({"origin": dict(origin)} if origin else {}),
        **({"hubVersion": hub_version} if hub_version else {}),
    }
    store = open_store(endpoint, keys)
    store.put(key(model, version), file)
    store.put_text(f"{model}/{version}/{MANIFEST}", json.dumps(manifest, indent=1))
    return uri(endpoint, model, version)


class StoredModel(NamedTuple):
    digest: str
    hub_version: str
    """NAMESPACE/MODEL:VERSION of the ModelHub; empty where it was not stored there."""


def find(endpoint: str, model: str, version: str, keys: Credentials) -> StoredModel:
    """Raises `StepFailed` if there is none."""
    text = open_store(endpoint, keys).get_text(f"{model}/{version}/{MANIFEST}")
    if text is None:
        where = uri(endpoint, model, version)
        raise StepFailed(f"there is no model {model!r} of version {version!r} at {where}; upload it by modelhub first")
    manifest = json.loads(text)
    return StoredModel(str(manifest.get("sha256") or ""), str(manifest.get("hubVersion") or ""))


def open_store(endpoint: str, keys: Credentials) -> FolderStore | S3Store:
    scheme = urlsplit(endpoint).scheme
    if scheme == "file":
        return FolderStore(Path(urlsplit(endpoint).path) / BUCKET)
    if scheme in ("http", "https"):
        return S3Store(endpoint.rstrip("/"), keys)
    raise StepFailed(f"endpoint: {endpoint!r} is neither http://…, https://… nor file://…")


class FolderStore:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, file: Path) -> None:
        """Readers see the old file or the new one, never a part."""
        target = self._folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.copyfile(file, draft)
        draft.replace(target)

    def put_text(self, name: str, text: str) -> None:
        target = self._folder / name
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)

    def get_text(self, name: str) -> str | None:
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None


class S3Store:
    def __init__(self, endpoint: str, keys: Credentials) -> None:
        self._endpoint, self._keys = endpoint, keys
        self._obstore, _ = object_store_client()
        settings: dict[str, Any] = {
            "region": "us-east-1",
            "client_options": {"allow_http": endpoint.startswith("http://"), "connect_timeout": "5s"},
        }
        if keys:
            settings |= {"access_key_id": keys.access_key, "secret_access_key": keys.secret_key}
        else:
            settings["skip_signature"] = True
        self._store = s3_store(BUCKET, endpoint=endpoint, virtual_hosted_style_request=False, **settings)
        # Addressed as a host of its own, a "key" is a bucket: so a request to create one can be signed.
        self._server = s3_store(BUCKET, endpoint=endpoint, virtual_hosted_style_request=True, **settings)

    def put(self, name: str, content: Path | bytes) -> None:
        try:
            try:
                self._obstore.put(self._store, name, content)
            except FileNotFoundError:  # NoSuchBucket
                self.create_bucket()
                self._obstore.put(self._store, name, content)
        except Exception as error:
            raise self._explained(error) from None

    def put_text(self, name: str, text: str) -> None:
        self.put(name, text.encode())

    def get_text(self, name: str) -> str | None:
        try:
            return bytes(self._obstore.get(self._store, name).bytes()).decode()
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._explained(error) from None

    def create_bucket(self) -> None:
        url = self._obstore.sign(self._server, "PUT", BUCKET, timedelta(minutes=5))
        request = urllib.request.Request(url, data=b"", method="PUT")  # noqa: S310 - the endpoint is http(s)
        try:
            urllib.request.urlopen(request, timeout=60).close()  # noqa: S310
        except urllib.error.HTTPError as error:
            if error.code != 409:  # somebody else created it meanwhile
                raise

    def _explained(self, error: Exception) -> StepFailed:
        text = redact(str(error), self._keys).partition("\n")[0][:300]
        hint = (
            "check the endpoint and the keys"
            if self._keys
            else "it may ask for keys: access-key and secret-key of the Secret model-center or data-center"
        )
        return StepFailed(f"the model store {self._endpoint} did not take the request: {text}; {hint}")
