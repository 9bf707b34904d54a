"""list: pages that all come from one moment, and the three shapes a client may ask for."""

from __future__ import annotations

import base64
import itertools
from collections import OrderedDict

import msgspec

from paddlecloud.kube import errors
from paddlecloud.local.store.record import Record
from paddlecloud.local.store.store import Store

from .registry import KindInfo
from .selection import Filter

SNAPSHOTS = 64  # pages begun and not finished that are remembered; the oldest must start again (410)


class Pages:
    """Unfinished lists, so that every page of one list shows the state of one moment."""

    def __init__(self) -> None:
        self._snapshots: OrderedDict[int, tuple[list[Record], int]] = OrderedDict()
        self._ids = itertools.count(1)

    def keep(self, rest: list[Record], revision: int) -> str:
        number = next(self._ids)
        self._snapshots[number] = (rest, revision)
        while len(self._snapshots) > SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return base64.urlsafe_b64encode(msgspec.json.encode({"v": 1, "rv": revision, "page": number})).decode()

    def take(self, token: str) -> tuple[list[Record], int]:
        try:
            decoded = msgspec.json.decode(base64.urlsafe_b64decode(token))
            number = int(decoded["page"])
        except (ValueError, KeyError, TypeError, msgspec.DecodeError):
            raise errors.BadRequest("continue key is not valid") from None
        if number not in self._snapshots:
            raise errors.Expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You must start a new list without the continue parameter."
            )
        return self._snapshots[number]


def list_records(
    store: Store,
    pages: Pages,
    info: KindInfo,
    namespace: str | None,
    *,
    labels: str,
    fields: str,
    limit: int = 0,
    token: str = "",
    at: int | None = None,
) -> tuple[list[Record], int, str, int | None]:
    """One page: records, the revision they are of, the token of the next page, and how many remain if known.

    The newest state is shown, or that of revision `at`.
    """
    chosen = Filter(info, labels, fields)
    if token:
        records, revision = pages.take(token)
    else:
        records, revision = store.list(info.collection, namespace), store.revision
        if at is not None:
            records, revision = store.list_at(info.collection, namespace, at), at
        if not chosen.trivial:
            records = [record for record in records if chosen.matches(record)]
    if not limit or len(records) <= limit:
        return records, revision, "", None
    return records[:limit], revision, pages.keep(records[limit:], revision), len(records) - limit
