"""Where artifacts come from: the repository of the namespace, a text of the workflow, the web, an S3 store."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import shutil
import stat
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from paddlecloud.local.workflow.executor import trees
from paddlecloud.local.workflow.executor.archives import CHUNK, Digest
from paddlecloud.local.workflow.executor.keys import names_of, record_name
from paddlecloud.local.workflow.executor.orders import ARTIFACTS, ExecutorError

TIMEOUT = 60.0


class Missing(ExecutorError):
    """There is no such artifact: an optional one may be left out."""


def fetch(order: dict[str, Any], target: str) -> None:
    """Write an artifact, as it was stored, to a file or folder that is not there yet."""
    if "key" in order:
        _from_repository(order["key"], target)
    elif "raw" in order:
        with open(target, "x", encoding="utf-8", errors="surrogatepass") as file:
            file.write(order["raw"])
    elif "http" in order:
        _from_web(order["http"], target)
    elif "s3" in order:
        from paddlecloud.local.workflow.executor import s3

        s3.fetch(order["s3"], target)
    else:
        raise ExecutorError("it has no location that is served")


def _from_repository(key: str, target: str) -> None:
    try:
        stored = trees.opened(os.path.join(ARTIFACTS, "files"), names_of(key))
    except (FileNotFoundError, NotADirectoryError):
        raise Missing(f"there is nothing in the artifact repository under the key {key}") from None
    except OSError as why:
        if why.errno != errno.ELOOP:
            raise
        raise ExecutorError(f"what is stored under the key {key} is a link, which is not followed") from None
    if stat.S_ISDIR(os.fstat(stored).st_mode):
        try:
            trees.copy(stored, target)
        finally:
            os.close(stored)
        return
    with os.fdopen(stored, "rb") as source, open(target, "xb") as file:
        digest = Digest(file)
        shutil.copyfileobj(source, digest, CHUNK)
    try:
        with open(os.path.join(ARTIFACTS, "records", record_name(key)), encoding="utf-8") as record:
            expected = json.load(record)["digest"]
    except FileNotFoundError:
        return  # a file inside a stored folder: its folder has the record
    if expected and digest.text != expected:  # a log of a container that was killed has none
        raise ExecutorError(
            f"what is stored under the key {key} is damaged: its digest is {digest.text} and should be {expected}"
        )


class Redirects(urllib.request.HTTPRedirectHandler):
    """Credentials and headers are for the server that the workflow names, and go to no other one."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        fresh = super().redirect_request(req, fp, code, msg, headers, newurl)
        if fresh is None:
            return None
        if fresh.type not in ("http", "https"):
            raise ExecutorError(f"{req.full_url[:200]} leads to {newurl[:200]}, which is no http or https address")
        if _origin(fresh.full_url) != _origin(req.full_url):
            fresh.headers = {"User-agent": "paddlecloud"}
        return fresh


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _from_web(order: dict[str, Any], target: str) -> None:
    url = str(order.get("url", ""))
    if not url.startswith(("http://", "https://")):
        raise ExecutorError(f"{url[:200]} is no http or https address")
    request = urllib.request.Request(url, headers={"User-Agent": "paddlecloud"})  # noqa: S310 - checked above
    for header in order.get("headers") or ():
        request.add_header(str(header["name"]), str(header["value"]))
    if "user" in order:
        user, password = (os.environ.get(order.get(each, ""), "") for each in ("user", "password"))
        request.add_header("Authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())
    try:
        opener = urllib.request.build_opener(Redirects)
        with opener.open(request, timeout=TIMEOUT) as answer, open(target, "xb") as file:
            shutil.copyfileobj(answer, file, CHUNK)
    except urllib.error.HTTPError as why:
        kind = Missing if why.code in (404, 410) else ExecutorError
        raise kind(f"{url[:200]}: the server answered {why.code} {why.reason}") from None
    except urllib.error.URLError as why:
        raise ExecutorError(f"{url[:200]}: {why.reason}; check the address and the network") from None


def digest_of_folder(folder: str) -> tuple[str, int]:
    """Of a folder that is stored as it is: the digest of the list of its files with theirs."""
    total, whole = 0, hashlib.sha256()
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(place, name)
            if os.path.islink(path):
                continue
            inner, size = hashlib.sha256(), 0
            with open(path, "rb") as file:
                while piece := file.read(CHUNK):
                    inner.update(piece)
                    size += len(piece)
            total += size
            line = f"{inner.hexdigest()} {os.path.relpath(path, folder)}\n"
            whole.update(line.encode(errors="surrogateescape"))
    return f"sha256:{whole.hexdigest()}", total
