"""Artifacts in an S3 store that the workflow names: signed requests (signature version 4), files streamed.

Credentials come from variables that the kubelet filled from Secrets; without them requests are not signed.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import http.client
import os
import shutil
import ssl
import xml.etree.ElementTree as ElementTree
from typing import Any
from urllib.parse import quote, urlsplit

from paddlecloud.local.workflow.executor.archives import CHUNK
from paddlecloud.local.workflow.executor.orders import ExecutorError
from paddlecloud.local.workflow.executor.sources import TIMEOUT, Missing
from paddlecloud.local.workflow.executor.trees import MOST_DEPTH

_EMPTY = hashlib.sha256().hexdigest()
MOST_LISTED = 1_000_000


class Bucket:
    """`order` has endpoint, bucket, region and the names of the variables with credentials."""

    def __init__(self, order: dict[str, Any]) -> None:
        endpoint = str(order.get("endpoint") or "s3.amazonaws.com")
        whole = endpoint if "://" in endpoint else f"{'http' if order.get('insecure') else 'https'}://{endpoint}"
        parts = urlsplit(whole)
        self._secure, self._host = parts.scheme == "https", parts.netloc
        self._bucket = str(order.get("bucket", ""))
        self._region = str(order.get("region") or "us-east-1")
        self._access, self._secret, self._session = (
            os.environ.get(str(order.get(each, "")), "") for each in ("access", "secret", "session")
        )
        if not self._bucket:
            raise ExecutorError("s3.bucket is missing")

    def get(self, key: str, target: str) -> None:
        with self._request("GET", key) as answer, open(target, "xb") as file:
            shutil.copyfileobj(answer, file, CHUNK)

    def put(self, key: str, source: str) -> None:
        digest = hashlib.sha256()
        with open(source, "rb") as file:
            while piece := file.read(CHUNK):
                digest.update(piece)
            file.seek(0)
            headers = {"content-length": str(os.path.getsize(source))}
            with self._request("PUT", key, digest=digest.hexdigest(), headers=headers, body=file):
                pass

    def keys(self, prefix: str) -> list[str]:
        found: list[str] = []
        token = ""
        while len(found) < MOST_LISTED:
            query = {"list-type": "2", "prefix": prefix, **({"continuation-token": token} if token else {})}
            with self._request("GET", "", query=query) as answer:
                listed = ElementTree.fromstring(answer.read(16 << 20))  # noqa: S314 - a store the author names
            space = listed.tag.partition("}")[0] + "}" if "}" in listed.tag else ""
            found += [each.text or "" for each in listed.iter(f"{space}Key")]
            token = listed.findtext(f"{space}NextContinuationToken") or ""
            if not token:
                break
        return found

    def _request(
        self,
        method: str,
        key: str,
        *,
        query: dict[str, str] | None = None,
        digest: str = _EMPTY,
        headers: dict[str, str] | None = None,
        body: Any = None,
    ) -> http.client.HTTPResponse:
        path = "/" + quote(f"{self._bucket}/{key}" if key else self._bucket, safe="/-._~")
        pairs = sorted((query or {}).items())
        search = "&".join(f"{quote(name, safe='-._~')}={quote(value, safe='-._~')}" for name, value in pairs)
        signed = self._signed(method, path, search, digest)
        context = ssl.create_default_context() if self._secure else None
        connection = (
            http.client.HTTPSConnection(self._host, timeout=TIMEOUT, context=context)
            if self._secure
            else http.client.HTTPConnection(self._host, timeout=TIMEOUT)
        )
        try:
            target = f"{path}?{search}" if search else path
            connection.request(method, target, body=body, headers={**(headers or {}), **signed})
            answer = connection.getresponse()
        except OSError as why:
            raise ExecutorError(f"the store {self._host} does not answer: {why}") from None
        if answer.status >= 300:
            text = answer.read(2000).decode(errors="replace")
            kind = Missing if answer.status == 404 else ExecutorError
            raise kind(f"the store {self._host} answered {answer.status} for {self._bucket}/{key}: {text[:300]}")
        return answer

    def _signed(self, method: str, path: str, search: str, digest: str) -> dict[str, str]:
        # `pipelines/launchers/fetch_model.py` has the same rules a second time: that file is sent alone into pods whose
        # images have nothing of this project, and neither package may import the other (contracts in pyproject.toml).
        now = datetime.datetime.now(datetime.timezone.utc)
        stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        headers = {"host": self._host, "x-amz-content-sha256": digest, "x-amz-date": stamp}
        if self._session:
            headers["x-amz-security-token"] = self._session
        if not self._access:
            return headers
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        canonical = "\n".join((method, path, search, lines, names, digest))
        scope = f"{day}/{self._region}/s3/aws4_request"
        text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
        key = f"AWS4{self._secret}".encode()
        for part in (day, self._region, "s3", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.new(key, text.encode(), "sha256").hexdigest()
        credential = f"Credential={self._access}/{scope}, SignedHeaders={names}, Signature={signature}"
        return {**headers, "authorization": f"AWS4-HMAC-SHA256 {credential}"}


def fetch(order: dict[str, Any], target: str) -> None:
    """An object, or all objects below a key as a folder."""
    bucket, key = Bucket(order), str(order["key"]).strip("/")
    try:
        bucket.get(key, target)
        return
    except Missing as why:
        names = [name for name in bucket.keys(f"{key}/") if not name.endswith("/")]
        if not names:
            raise why from None
    for name in names:
        place = os.path.join(target, *_below(f"{key}/", name))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        bucket.get(name, place)


def _below(prefix: str, name: str) -> list[str]:
    """The parts of the path of an object. What a store lists need not be what it was asked for."""
    parts = name.removeprefix(prefix).split("/")
    if not name.startswith(prefix) or "\0" in name or not {"", ".", ".."}.isdisjoint(parts):
        raise ExecutorError(f"the store lists an object {name[:200]!r}, which is no file below {prefix[:60]!r}")
    if len(parts) > MOST_DEPTH:
        raise ExecutorError(f"the object {name[:60]!r}… has more than {MOST_DEPTH} folders inside one another")
    return parts


def store(order: dict[str, Any], source: str) -> None:
    bucket, key = Bucket(order), str(order["key"]).strip("/")
    if not os.path.isdir(source):
        bucket.put(key, source)
        return
    for folder, _, files in os.walk(source):
        for name in sorted(files):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                bucket.put(f"{key}/{os.path.relpath(path, source)}", path)
