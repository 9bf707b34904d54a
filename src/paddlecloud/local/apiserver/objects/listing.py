"""list: which records a request selects, and pages that all come from one moment."""

from __future__ import annotations

import base64
import re
import secrets
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from paddlecloud.kube import errors
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.kube.timeslice import TimeSlice
from paddlecloud.local.apiserver.auth.authentication import User
from paddlecloud.local.apiserver.http.negotiation import encode
from paddlecloud.local.apiserver.objects.selection import Filter
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.store.record import Record
from paddlecloud.local.store.store import Store

UNFINISHED = 64  # lists begun and not finished that are remembered
LIFETIME = 300.0  # seconds a list may take; etcd keeps the history that pages need as long
_TOKEN = re.compile(r"([A-Za-z0-9_-]{32})\.([1-9][0-9]{0,11})\.([A-Za-z0-9_-]{2,600})", re.ASCII)
_RESUME = re.compile(r"after\.([A-Za-z0-9_-]{2,600})", re.ASCII)
_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. That "
    "remainder is inconsistent with the pages before: it shows what is there now."
)


class Selection(NamedTuple):
    """What one list shows, and to whom. A continue token holds for exactly this."""

    user: str
    uid: str
    resource: Resource
    namespace: str | None
    labels: str
    fields: str

    @staticmethod
    def of(user: User, kind: KindInfo, namespace: str, *, labels: str, fields: str) -> Selection:
        place = namespace or None if kind.resource.namespaced else None
        return Selection(user.name, user.uid, kind.resource, place, labels, fields)

    def records(self, store: Store, kind: KindInfo, *, at: int | None = None) -> tuple[list[Record], int]:
        """The records and the revision they are of: the newest, or `at`."""
        chosen = Filter(kind, self.labels, self.fields)
        if at is None:
            records, revision = store.list(kind.collection, self.namespace), store.revision
        else:
            records, revision = store.list_at(kind.collection, self.namespace, at), at
        return [record for record in records if chosen.trivial or chosen.matches(record)], revision


class Page(NamedTuple):
    records: list[Record]
    revision: int
    token: str = ""
    """Asks for the next page; empty on the last."""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class _Unfinished:
    selection: Selection
    share: str
    """Whose part of the lists it takes."""
    records: list[Record]
    revision: int
    expires: float


class Pages:
    """Unfinished lists, so that every page of one list shows the state of one moment.

    A token is the list's random id, a position in it, and the last object shown. It is worth nothing to anybody but the
    user who began the list, nor for another resource, namespace or selector. Every page can be asked for again until
    the last one was given, the list is LIFETIME old, or there are too many: then the user with the most loses the
    oldest. Lists of users that somebody impersonates are theirs, and all service accounts of a namespace count as one:
    both can be made up. The token of a list that is forgotten is answered with one for what comes after its object now,
    as kube-apiserver does (apiserver/pkg/storage/continue.go).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lists: OrderedDict[str, _Unfinished] = OrderedDict()

    def first(
        self,
        selection: Selection,
        records: list[Record],
        revision: int,
        limit: int,
        *,
        impersonator: User | None = None,
    ) -> Page:
        if not limit or len(records) <= limit:
            return Page(records, revision)
        self._expire()
        key = secrets.token_urlsafe(24)
        share = _share(impersonator.name if impersonator else selection.user)
        self._lists[key] = _Unfinished(selection, share, records, revision, self._clock.monotonic() + LIFETIME)
        self._make_room()
        return self._page(key, records, revision, 0, limit)

    def next(self, selection: Selection, token: str, limit: int) -> Page:
        match = _TOKEN.fullmatch(token)
        if match is None:
            raise errors.BadRequest("continue key is not valid")
        self._expire()
        key, start, last = match[1], int(match[2]), match[3]
        found = self._lists.get(key)
        # Another's list is answered like one that never was.
        if found is None or found.selection != selection or start >= len(found.records):
            expired = errors.Expired(_EXPIRED)
            expired.resume = f"after.{last}"
            raise expired
        if _name_of(found.records[start - 1]) != last:
            raise errors.BadRequest("continue key is not valid")
        page = self._page(key, found.records, found.revision, start, limit or len(found.records))
        if not page.token:
            del self._lists[key]
        return page

    @staticmethod
    def _page(key: str, records: list[Record], revision: int, start: int, limit: int) -> Page:
        end = start + limit
        if end >= len(records):
            return Page(records[start:], revision)
        token = f"{key}.{end}.{_name_of(records[end - 1])}"
        return Page(records[start:end], revision, token, len(records) - end)

    def _expire(self) -> None:
        now = self._clock.monotonic()
        while self._lists and next(iter(self._lists.values())).expires <= now:
            self._lists.popitem(last=False)

    def _make_room(self) -> None:
        while len(self._lists) > UNFINISHED:
            ((greediest, _),) = Counter(found.share for found in self._lists.values()).most_common(1)
            del self._lists[next(key for key, found in self._lists.items() if found.share == greediest)]


def resumes(token: str) -> bool:
    """Whether it asks for the rest of a list that is forgotten."""
    return _RESUME.fullmatch(token) is not None


def records_after(token: str, records: list[Record]) -> list[Record]:
    """Those that come after the object that such a token names."""
    last = token.partition(".")[2]
    try:
        namespace, _, name = base64.urlsafe_b64decode(last + "=" * (-len(last) % 4)).decode().partition("/")
    except ValueError:
        raise errors.BadRequest("continue key is not valid") from None
    return [record for record in records if (record.address.namespace, record.address.name) > (namespace, name)]


def _name_of(record: Record) -> str:
    return base64.urlsafe_b64encode(f"{record.address.namespace}/{record.address.name}".encode()).decode().rstrip("=")


def _share(user: str) -> str:
    return user.rpartition(":")[0] if user.startswith("system:serviceaccount:") else user


async def listed(empty: Object, records: Iterable[Record], render: Callable[[Record], bytes]) -> bytes:
    """The list of `records`, rendered one by one: others are served in between."""
    slice_, items = TimeSlice(), []
    for record in records:
        items.append(render(record))
        await slice_.checkpoint()
    return filled(empty, items)


def filled(empty: Object, items: list[bytes]) -> bytes:
    """A list with `items`, which are JSON, from one whose last field is an empty list."""
    head = encode(empty)
    assert head.endswith(b"[]}")
    if not items:
        return head
    # One copy: a list may have hundreds of megabytes.
    items[0] = head[:-2] + items[0]
    items[-1] += b"]}"
    return b",".join(items)
