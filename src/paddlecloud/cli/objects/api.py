"""The API server behind the chosen context, as synchronous calls, with discovery remembered between commands.

Commands are short: they use the stdlib transport, whose coroutines never suspend, so nothing here needs an event loop.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from paddlecloud import __version__
from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config, load
from paddlecloud.kube.discovery import Discovery, Entry, UnknownKind
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.kube.stdlib import StdlibTransport, drive, drive_iter
from paddlecloud.sdk.ownership import FIELD_MANAGER

T = TypeVar("T")

DISCOVERY_TTL = 600.0
"""A kind that is not in the remembered answer makes it void at once, so the age only bounds how long a removed kind or
a changed preferred version goes unnoticed."""
DISCOVERY_KEPT = 86_400.0


def connect(
    *,
    kubeconfig: str | None,
    context: str | None,
    on_warning: Callable[[str], None] | None = None,
    timeout: float = 60.0,
) -> Api:
    config = load(kubeconfig, context)
    transport = StdlibTransport(config, timeout=timeout, user_agent=f"pdc/{__version__}")
    return Api(config, Client(transport, field_manager=FIELD_MANAGER, on_warning=on_warning))


class Api:
    def __init__(self, config: Config, client: Client) -> None:
        self.config = config
        self.client = client
        self._discovery: Discovery | None = None
        self._remembered = False

    @property
    def namespace(self) -> str:
        return self.config.namespace

    def close(self) -> None:
        drive(self.client.close())

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of a client method: `api.do(api.client.get(PODS, "x", "default"))`."""
        return drive(call)

    def each(self, items: AsyncIterator[T]) -> Iterator[T]:
        return drive_iter(items)

    def json(self, path: str, *, query: Mapping[str, str] | None = None, accept: str = "application/json") -> Object:
        response = drive(self.client.raw("GET", path, query=query, accept=accept))
        answer: Object = msgspec.json.decode(response.body)
        return answer

    # Kinds

    def entry(self, name: str) -> Entry:
        """The kind people mean by `pdj`, `deploy` or `paddlejobs.batch.paddlepaddle.org`."""
        return self._known(lambda discovery: discovery.entry(name))

    def resource_of(self, obj: Object) -> Resource:
        return self._known(lambda discovery: discovery.for_kind(str(obj["apiVersion"]), str(obj["kind"])))

    def category(self, name: str) -> list[Entry]:
        """The listable members of a category such as `all`; empty when there is no such category."""
        return [entry for entry in self.discovery() if name in entry.categories and "list" in entry.verbs]

    def discovery(self) -> Discovery:
        if self._discovery is None:
            self._discovery = self._recalled()
            self._remembered = self._discovery is not None
            if self._discovery is None:
                self.rediscover()
        assert self._discovery is not None
        return self._discovery

    def rediscover(self) -> Discovery:
        self._discovery = drive(self.client.discover())
        self._remembered = False
        _remember(self._cache_file("discovery"), msgspec.json.encode(self._discovery.entries))
        return self._discovery

    def core_document(self, *, fresh: bool = False) -> tuple[Object, bool]:
        """The OpenAPI schemas of core/v1, and whether they are a remembered answer."""
        from paddlecloud.cli.objects import schema
        from paddlecloud.kube.resource import PODS

        path = self._cache_file("openapi")
        kept = None if fresh else _recall(path)
        try:
            if kept is not None:
                return msgspec.json.decode(kept), True
        except (msgspec.DecodeError, RecursionError):
            pass  # a cache that cannot be read is no cache
        document = {"components": schema.fetch(self, PODS).get("components") or {}}
        _remember(path, msgspec.json.encode(document))
        return document, False

    def forget(self) -> None:
        """Called when a collection that should exist was not there: the remembered answer misled us."""
        if self._remembered:
            try:
                os.unlink(self._cache_file("discovery"))
            except OSError:
                pass  # nothing remembered, nothing to forget

    def _known(self, find: Callable[[Discovery], T]) -> T:
        try:
            return find(self.discovery())
        except UnknownKind:
            if not self._remembered:
                raise
            return find(self.rediscover())

    def _recalled(self) -> Discovery | None:
        kept = _recall(self._cache_file("discovery"))
        try:
            return Discovery(_ENTRIES.decode(kept)) if kept is not None else None
        except (msgspec.DecodeError, RecursionError):
            return None  # a cache that cannot be read is no cache

    def _cache_file(self, what: str) -> str:
        import hashlib

        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        # The certificate authority distinguishes two platforms that used the same port one after the other.
        identity = f"{self.config.server}\n".encode() + (self.config.ca or b"")
        return os.path.join(root, "paddlecloud", what, f"{hashlib.sha256(identity).hexdigest()[:32]}.json")


def _recall(path: str) -> bytes | None:
    try:
        if time.time() - os.stat(path).st_mtime > DISCOVERY_TTL:
            return None
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _remember(path: str, answer: bytes) -> None:
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(answer)
        os.replace(temporary, path)
        _drop_old(os.path.dirname(path))
    except OSError:
        pass  # a read-only home costs two requests per command, nothing else


def _drop_old(folder: str) -> None:
    """Every platform on a new port leaves an answer that nobody will ask for again."""
    for found in os.scandir(folder):
        if time.time() - found.stat().st_mtime > DISCOVERY_KEPT:
            os.unlink(found.path)


_ENTRIES = msgspec.json.Decoder(list[Entry])
