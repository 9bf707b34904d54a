"""What can be read from: a folder, an S3 bucket, an archive on the web. One small interface for all of them.

Reading is synchronous and safe in many threads: a sync of many small files keeps a pool of them busy, and the Rust
client behind `obstore` does its waiting without holding the interpreter.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
import textwrap
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from paddlecloud.api.folders import ANYWHERE, FolderRule, Refusal
from paddlecloud.storage.credentials import Credentials, redact
from paddlecloud.storage.endpoints import S3_SCHEMES, VARIABLE, Bucket, bucket_of, rewrites
from paddlecloud.storage.errors import BadUri, Denied, Missing, StorageError, Unreachable, Unsupported
from paddlecloud.storage.uri import WEB, Location

CHUNK = 1 << 20
WHOLE = 8 << 20
"""Objects up to this size are fetched in one piece."""
PATIENCE = timedelta(seconds=20)
"""How long requests that fail are tried again."""

_MD5 = re.compile(r'^"?([0-9a-f]{32})"?$')


class Entry(NamedTuple):
    """A file, or a folder that somebody made on purpose. Keys are relative and separated by slashes."""

    key: str
    size: int
    mtime: float
    etag: str = ""
    mode: int | None = None
    is_folder: bool = False
    refused: str = ""
    """Why it may not be read; with it a folder is one entry, whose content is not listed."""

    @property
    def md5(self) -> str:
        """What the store says about the content; empty where its tag is something else."""
        match = _MD5.match(self.etag)
        return match[1] if match else ""


class Source(Protocol):
    def entries(self, after: str = "") -> Iterator[Entry]:
        """Everything there is in the order of keys, from `after` on. Raises `StorageError`."""

    def read(self, entry: Entry) -> Iterator[Any]:
        """Its bytes in pieces (anything with the buffer protocol)."""

    def delete(self, entry: Entry) -> None: ...


def open_source(
    location: Location,
    credentials: Credentials,
    *,
    environment: Mapping[str, str],
    https: bool = True,
    limits: FolderRule = ANYWHERE,
) -> Source | None:
    """The source at an address; None for a scheme that is left to JuiceFS. `limits` are those of `file://`."""
    if location.scheme == "file":
        return FolderSource(location.path, limits)
    if location.scheme in WEB:
        from paddlecloud.storage.archive import ArchiveSource

        return ArchiveSource(location)
    rewritten = rewrites(environment)
    if location.scheme in S3_SCHEMES or _is_rewritten(location, rewritten):
        return BucketSource(bucket_of(location, rewritten=rewritten, https=https), credentials, location)
    return None


def _is_rewritten(location: Location, rewritten: Mapping[str, str]) -> bool:
    domain = location.host.partition(".")[2]
    return any(f"{location.scheme}://{host}" in rewritten for host in (location.host, f"*.{domain}"))


_REFUSED: dict[Refusal, str] = {
    "closed": "sets may not read the folders of the platform and of the cache server: name another folder",
    "hidden": (
        "sets may not read hidden files and folders behind a link, in a home or right below an allowed folder, which "
        "often hold keys: move the data into a folder without a dot, or name the folder that holds the data alone"
    ),
    "outside": (
        "sets may not read outside of the folders that the operator allows, where this link leads: copy the data "
        "instead of linking it, or ask the operator to allow its folder"
    ),
}


class FolderSource:
    """Files below a folder. Links are followed, as copying a data set made of links needs; circles are not.

    `limits` says where the files may really lie; it is asked about what was opened, not about its name. The folder and
    those that links lead to are judged by themselves, and what lies in them as their content.
    """

    def __init__(self, path: str, limits: FolderRule = ANYWHERE) -> None:
        self._root = path.rstrip("/") or "/"
        self._limits = FolderRule(limits.roots and _real(limits.roots), _real(limits.closed))
        self._homes = _real(tuple(user.pw_dir for user in pwd.getpwall()))
        self._entered: list[str] = []
        """Folders that may be read as a whole, by where they really lie: the source, and those that links lead to."""

    def entries(self, after: str = "") -> Iterator[Entry]:
        try:
            root = os.stat(self._root)
        except OSError as error:
            raise Missing(f"file://{self._root}: {error.strerror}") from error
        if refusal := self._enter(os.path.realpath(self._root)):
            raise Denied(f"file://{self._root}: {_REFUSED[refusal]}")
        if stat.S_ISREG(root.st_mode):
            yield Entry("", root.st_size, root.st_mtime, mode=stat.S_IMODE(root.st_mode))
            return
        yield from self._below("", after, (os.path.realpath(self._root),))

    def _enter(self, real: str) -> Refusal | None:
        """As `_refusal`, for the source and for what a link leads to: what may be read is remembered."""
        refusal = self._refusal(real)
        if refusal is None and not any(real.startswith(f"{folder}/") for folder in self._entered):
            self._entered.append(real)
        return refusal

    def _refusal(self, real: str) -> Refusal | None:
        refusal = self._limits.refusal(real)
        if refusal != "hidden":
            return refusal
        inside = (self._limits.refusal_inside(folder, real, self._homes) for folder in tuple(self._entered))
        return None if None in inside else refusal

    def _below(self, folder: str, after: str, above: tuple[str, ...]) -> Iterator[Entry]:
        found = []
        try:
            with os.scandir(os.path.join(self._root, folder)) as listing:
                for item in listing:
                    is_folder = item.is_dir()
                    found.append((item.name + "/" if is_folder else item.name, item))
        except OSError as error:
            raise Unreachable(f"file://{self._root}/{folder}: {error.strerror}") from error
        found.sort(key=lambda pair: os.fsencode(pair[0]))
        for name, item in found:
            key = folder + name
            if name.endswith("/"):
                if key < after and not after.startswith(key):
                    continue
                inner = os.path.realpath(item.path)
                if inner in above:
                    continue
                info = item.stat()
                if refusal := self._enter(inner) if item.is_symlink() else self._refusal(inner):
                    if refusal != "closed":  # what is the platform's own is nobody's data
                        yield Entry(key[:-1], 0, info.st_mtime, refused=_REFUSED[refusal])
                    continue
                yield Entry(key, 0, info.st_mtime, mode=stat.S_IMODE(info.st_mode), is_folder=True)
                yield from self._below(key, after, (*above, inner))
            elif key >= after:
                try:
                    info = item.stat()
                except FileNotFoundError:
                    continue  # a link to nowhere, or a file removed while we look
                if stat.S_ISREG(info.st_mode):
                    yield Entry(key, info.st_size, info.st_mtime, mode=stat.S_IMODE(info.st_mode))

    def _path(self, entry: Entry) -> str:
        return os.path.join(self._root, entry.key) if entry.key else self._root

    def read(self, entry: Entry) -> Iterator[Any]:
        try:
            with open(self._path(entry), "rb", buffering=0) as file:
                if refusal := self._refusal(os.readlink(f"/proc/self/fd/{file.fileno()}")):
                    raise Denied(f"file://{self._path(entry)}: {_REFUSED[refusal]}")
                while piece := file.read(CHUNK):
                    yield piece
        except OSError as error:
            raise Missing(f"file://{self._path(entry)}: {error.strerror}") from error

    def delete(self, entry: Entry) -> None:
        os.unlink(self._path(entry))


def _real(folders: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(os.path.realpath(folder) for folder in folders)


class BucketClient:
    """An S3 bucket from a prefix on: requests, listings, and failures in words that show no keys."""

    def __init__(self, bucket: Bucket, credentials: Credentials, location: Location) -> None:
        self._obstore, _ = object_store_client()
        self._shown, self._location, self._endpoint = str(location), location, bucket.endpoint
        self._credentials = credentials
        prefix = bucket.prefix.strip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        settings: dict[str, Any] = {"endpoint": bucket.endpoint, "region": _region(bucket.endpoint)}
        if credentials:
            settings |= {"access_key_id": credentials.access_key, "secret_access_key": credentials.secret_key}
            if credentials.session_token:
                settings["session_token"] = credentials.session_token
        else:
            settings["skip_signature"] = True
        settings["client_options"] = {
            "allow_http": bucket.endpoint.startswith("http://"),
            "connect_timeout": "5s",
            "timeout": "60s",
            "user_agent": "paddlecloud",
        }
        settings["retry_config"] = {"max_retries": 4, "retry_timeout": PATIENCE}
        self._store = s3_store(bucket.name, **settings, virtual_hosted_style_request=False)

    def _listed(self, prefix: str | None, after: str) -> Iterator[Entry]:
        cut = len(prefix or "")
        try:
            # No offset is sent: some servers with the API of S3 skip everything below a folder that it names.
            for chunk in self._obstore.list(self._store, prefix, chunk_size=1000):
                for item in chunk:
                    key = item["path"][cut:] if item["path"].startswith(prefix or "") else ""
                    if key and key >= after:
                        modified = item["last_modified"].timestamp()
                        yield Entry(key, item["size"], modified, etag=item["e_tag"] or "")
        except Exception as error:
            raise self._explained(error) from None  # the original's text shows requests at length

    def _explained(self, error: Exception) -> StorageError:
        text = redact(str(error), self._credentials)
        if isinstance(error, StorageError):
            return error
        status = re.search(r"status code: (\d+)", text)
        code = re.search(r"<Code>([^<]*)</Code>", text)
        message = re.search(r"<Message>([^<]*)</Message>", text)
        said = ": ".join(match[1] for match in (code, message) if match)
        number = int(status[1]) if status else 0
        if number in (401, 403) or isinstance(error, PermissionError):
            hint = "check access-key and secret-key" if self._credentials else "it asks for keys: name a Secret"
            return Denied(f"{self._shown}: access denied ({said or number}); {hint}")
        if number == 404 or isinstance(error, FileNotFoundError):
            return Missing(f"{self._shown}: not found ({said or number}); check bucket and prefix")
        if isinstance(error, ValueError):
            return BadUri(f"{self._shown}: {text.splitlines()[0]}")
        if NO_TLS in text:
            return Unreachable(f"{self._shown}: the server at {self._endpoint} does not use TLS; {self._over_http()}")
        reason = said or _cause(text)
        return Unreachable(f"{self._shown}: {reason}; check the endpoint {self._endpoint} and the network")

    def _over_http(self) -> str:
        """How such a server is reached. Not by itself: keys and data would be sent in clear."""
        address = f"{self._location.scheme}://{self._location.host}"
        plain = self._endpoint.replace("https://", "http://", 1)
        return f"for plain http start the platform with {VARIABLE}={address}={plain}, or sync with no-https"


class BucketSource(BucketClient):
    """Objects below a prefix of an S3 bucket."""

    def entries(self, after: str = "") -> Iterator[Entry]:
        found = False
        for entry in self._listed(self._prefix or None, after):
            found = True
            yield entry
        if not found and not after and self._prefix:
            yield from self._single()

    def _single(self) -> Iterator[Entry]:
        """A prefix that is itself an object: one file."""
        try:
            item = self._obstore.head(self._store, self._prefix.rstrip("/"))
        except FileNotFoundError:
            return
        except Exception as error:
            raise self._explained(error) from None
        yield Entry("", item["size"], item["last_modified"].timestamp(), etag=item["e_tag"] or "")

    def _key(self, entry: Entry) -> str:
        return self._prefix + entry.key if entry.key else self._prefix.rstrip("/")

    def read(self, entry: Entry) -> Iterator[Any]:
        try:
            result = self._obstore.get(self._store, self._key(entry))
            if entry.size <= WHOLE:
                yield memoryview(result.bytes())
            else:
                for piece in result.stream(min_chunk_size=CHUNK):
                    yield memoryview(piece)
        except Exception as error:
            raise self._explained(error) from None

    def delete(self, entry: Entry) -> None:
        try:
            self._obstore.delete(self._store, self._key(entry))
        except Exception as error:
            raise self._explained(error) from None


NO_TLS = "InvalidMessage("
"""rustls of an answer that is no TLS: a server of plain http."""
LONGEST_CAUSE = 200


def _cause(text: str) -> str:
    """The innermost reason of a failed request: `Connection refused`, `dns error` and the like."""
    for words in (
        "Connection refused",
        "dns error",
        "timed out",
        "Connection reset",
        "certificate",
        "No route to host",
    ):
        if words.lower() in text.lower():
            return words[0].lower() + words[1:]
    innermost = text.partition("\n")[0].rpartition(" - ")[2]  # before it the request, at length
    return textwrap.shorten(innermost, LONGEST_CAUSE, placeholder=" …")


def _region(endpoint: str) -> str:
    """What signatures name: s3.us-east-2.amazonaws.com, s3.bj.bcebos.com, oss-cn-beijing.aliyuncs.com …"""
    host = endpoint.partition("://")[2].partition(":")[0]
    parts = host.split(".")
    if len(parts) >= 4 and not host.replace(".", "").isdigit():
        return parts[-3]
    return parts[0] if len(parts) == 3 and not parts[0].isdigit() and parts[0] != "s3" else "us-east-1"


def s3_store(bucket: str, **settings: Any) -> Any:
    """obstore's client of a bucket.

    Small images have no certificates, without which it does not even use plain HTTP: certifi's will do. Programs that
    are started from here on, such as juicefs, trust them too.
    """
    obstore, store = object_store_client()
    try:
        return store.S3Store(bucket, **settings)
    except obstore.exceptions.GenericError as error:
        if "No CA certificates" not in str(error):
            raise
    import certifi

    os.environ["SSL_CERT_FILE"] = certifi.where()
    return store.S3Store(bucket, **settings)


def object_store_client() -> tuple[Any, Any]:
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError as error:
        raise Unsupported("object stores need the package obstore: pip install 'paddlecloud[data]'") from error
    return obstore, obstore.store
