"""Who did what, when, and how it ended: one JSON line per request, in the form of Kubernetes' audit events.

Only metadata is written: never a body, never a header but the user agent, never a query (it may hold a token). The
request path pays for appending to a list; a separate thread encodes and writes. When the disk cannot keep up or is
full, entries are dropped and counted: the log must never stop the server. A crash loses at most the last moments.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import uuid
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from paddlecloud.kube.clock import Clock, SystemClock, rfc3339
from paddlecloud.kube.resource import Object

if TYPE_CHECKING:
    from paddlecloud.local.apiserver.auth.authentication import User
    from paddlecloud.local.apiserver.http.request import RequestInfo

log = logging.getLogger(__name__)

_GATHER = 0.1  # seconds entries may wait for others before they are written
_LONGEST_TEXT = 1024
_MOST_VALUES = 32  # groups, or values of an extra, of one user


class Entry(NamedTuple):
    """One finished request."""

    when: float
    user: User
    impersonated: User | None
    verb: str
    path: str
    info: RequestInfo | None
    code: int
    seconds: float
    user_agent: str


class AuditLog:
    """An append-only file of mode 0600 that rotates by size: `audit.log`, `audit.log.1`, …"""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock | None = None,
        max_bytes: int = 64 * 1024 * 1024,
        keep: int = 3,
        capacity: int = 50_000,
    ) -> None:
        self.dropped = 0
        self._path = path
        self._clock = clock or SystemClock()
        self._max_bytes = max_bytes
        self._keep = keep
        self._capacity = capacity
        self._waiting: deque[Entry] = deque()
        self._writing = threading.Lock()  # held by the thread that drains
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._failing = False
        self._file, self._size = self._open()
        self._torn = self._ends_torn()
        self._thread = threading.Thread(target=self._work, name="audit", daemon=True)
        self._thread.start()

    def record(
        self,
        *,
        user: User,
        verb: str,
        path: str,
        info: RequestInfo | None,
        code: int,
        seconds: float,
        user_agent: str = "",
        impersonated: User | None = None,
    ) -> None:
        """Note a finished request. Never waits, never raises."""
        if len(self._waiting) >= self._capacity:
            self.dropped += 1
            return
        entry = Entry(self._clock.now(), user, impersonated, verb, path, info, code, seconds, user_agent)
        self._waiting.append(entry)
        if not self._wake.is_set():
            self._wake.set()

    def flush(self) -> None:
        """Write everything recorded so far."""
        with self._writing:
            self._drain()

    def close(self) -> None:
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout=5)
        self.flush()
        os.close(self._file)

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait()
            self._stopping.wait(_GATHER)
            self._wake.clear()
            self.flush()

    def _drain(self) -> None:
        lines: list[bytes] = []
        size = 0
        for _ in range(len(self._waiting)):  # what comes meanwhile is for the next round
            line = _encode(event(self._waiting.popleft())) + b"\n"
            if self._size + size + len(line) > self._max_bytes and self._size + size:
                self._write(lines)
                self._rotate()
                lines, size = [], 0
            lines.append(line)
            size += len(line)
        self._write(lines)

    def _write(self, lines: list[bytes]) -> None:
        if not lines:
            return
        data = memoryview(b"\n" * self._torn + b"".join(lines))
        try:
            while data:
                written = os.write(self._file, data)
                self._size += written
                data = data[written:]
            self._torn = self._failing = False
        except OSError as error:
            self.dropped += len(lines)
            self._torn = True  # part of a line may be there: the next one starts afresh
            if not self._failing:
                log.error("cannot write the audit log %s: %s; entries are dropped", self._path, error.strerror)
            self._failing = True

    def _rotate(self) -> None:
        try:
            for number in range(self._keep, 0, -1):
                source = self._numbered(number - 1)
                if source.exists():
                    source.replace(self._numbered(number))
            fresh, size = self._open()
        except OSError as error:  # go on with the file at hand, however large
            log.error("cannot rotate the audit log %s: %s", self._path, error.strerror)
            return
        os.close(self._file)
        self._file, self._size, self._torn = fresh, size, False

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def _open(self) -> tuple[int, int]:
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.fchmod(descriptor, 0o600)
        return descriptor, os.fstat(descriptor).st_size

    def _ends_torn(self) -> bool:
        """Whether a crash left half a line at the end."""
        return self._size > 0 and os.pread(self._file, 1, self._size - 1) != b"\n"


_encode = msgspec.json.Encoder().encode

_SERVER_ID = str(uuid.uuid4())[:-12]
_numbers = itertools.count(1)  # with the id of the server in front, each entry has its own uuid


def event(entry: Entry) -> Object:
    """The entry as an `audit.k8s.io/v1` Event of level Metadata."""
    body: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": f"{_SERVER_ID}{next(_numbers):012x}",
        "stage": "ResponseComplete",
        "requestURI": _clean(entry.path.partition("?")[0]),
        "verb": entry.verb,
        "user": _identity(entry.user),
        "userAgent": _clean(entry.user_agent),
        "responseStatus": {"code": entry.code},
        "requestReceivedTimestamp": _moment(entry.when - entry.seconds),
        "stageTimestamp": _moment(entry.when),
        "annotations": {"apiserver.latency.k8s.io/total": f"{entry.seconds * 1000:.3f}ms"},
    }
    if entry.impersonated is not None:
        body["impersonatedUser"] = _identity(entry.impersonated)
    info = entry.info
    if info is not None and info.is_resource:
        reference = {
            "resource": info.resource,
            "namespace": info.namespace,
            "name": info.name,
            "apiGroup": info.group,
            "apiVersion": info.version,
            "subresource": info.subresource,
        }
        body["objectRef"] = {key: _clean(value) for key, value in reference.items() if value}
    return body


def _identity(user: User) -> Object:
    """The `UserInfo` of a user: a reader of the log must see which groups gave the right."""
    body: dict[str, Any] = {"username": _clean(user.name)}
    if user.uid:
        body["uid"] = _clean(user.uid)
    if user.groups:
        body["groups"] = [_clean(group) for group in user.groups[:_MOST_VALUES]]
    if user.extra:
        extra = list(user.extra.items())[:_MOST_VALUES]
        body["extra"] = {_clean(key): [_clean(value) for value in values[:_MOST_VALUES]] for key, values in extra}
    return body


def _moment(seconds: float) -> str:
    """RFC 3339 with microseconds; the seconds, which most entries share, are formatted once."""
    whole, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{rfc3339(whole)[:-1]}.{micros:06d}Z"


def _clean(text: str) -> str:
    """Bounded, and encodable whatever bytes a client sent."""
    if len(text) <= _LONGEST_TEXT and text.isascii():
        return text
    return text[:_LONGEST_TEXT].encode("utf-8", "replace").decode()
