"""The lines of pods' logs with their times: of one pod, of several merged, and from where a broken stream left off.

Times are always asked of the server, because merging and resuming need them; who prints leaves them out again.
Coroutines here await nothing but the client, so the command line drives them without an event loop (`stdlib.drive`).
"""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import PODS
from paddlecloud.kube.transport import split_lines
from paddlecloud.sdk.members import Member


class Line(NamedTuple):
    time: str
    member: Member
    text: str


class LogOptions(NamedTuple):
    tail: int | None = None
    since: float | None = None
    previous: bool = False
    container: str | None = None


async def read(
    client: Client, member: Member, options: LogOptions, *, follow: bool = False, after: str = ""
) -> AsyncGenerator[Line, None]:
    """Lines as they come. `after` resumes: the server filters by whole seconds, the rest is filtered here."""
    meta = member.pod["metadata"]
    path = member.kept_in or PODS.path(meta.get("namespace"), meta["name"], "log")
    query = _query(member, options, follow=follow, after=after)
    if member.kept_in:
        query["pod"] = member.uid
    lines = split_lines(client.stream(path, query=query, accept="*/*"))
    last, border = after, order(after)
    try:
        async for raw in lines:
            time, _, text = raw.decode(errors="replace").partition(" ")
            if not time[:4].isdigit() or "T" not in time:
                time, text = last, f"{time} {text}".rstrip()  # a runtime that stamps no times
            elif border and order(time) <= border:
                continue
            last = time
            yield Line(time, member, text)
    finally:
        await lines.aclose()


async def merged(client: Client, members: Sequence[Member], options: LogOptions) -> AsyncGenerator[Line, None]:
    """All lines there are now, ordered by time; lines of equal time keep the order of the members.

    `tail` counts the lines of a rank over all its runs. A pod that was deleted since it was listed is left out; it is
    an error where none is left.
    """
    lines = _merged(client, members, options)
    try:
        if options.tail is None or len({one.tag for one in members}) == len(members):
            async for line in lines:
                yield line
            return
        kept: dict[str, deque[int]] = {}
        read: list[Line] = []
        async for line in lines:
            kept.setdefault(line.member.tag, deque(maxlen=options.tail)).append(len(read))
            read.append(line)
    finally:
        await lines.aclose()
    for number in sorted(number for numbers in kept.values() for number in numbers):
        yield read[number]


async def _merged(client: Client, members: Sequence[Member], options: LogOptions) -> AsyncGenerator[Line, None]:
    import heapq

    readers = [read(client, member, options) for member in members]
    heads: list[tuple[str, int, Line]] = []
    gone: set[int] = set()

    async def refill(number: int) -> None:
        try:
            async for line in readers[number]:
                heapq.heappush(heads, (order(line.time), number, line))
                return
        except NotFound:
            gone.add(number)
            if len(gone) == len(readers):
                raise

    try:
        for number in range(len(readers)):
            await refill(number)
        while heads:
            _, number, line = heapq.heappop(heads)
            yield line
            await refill(number)
    finally:
        for reader in readers:
            await reader.aclose()


def order(time: str) -> str:
    """A key by which times sort as moments: runtimes drop trailing zeros and write the offset of their node."""
    if not time:
        return ""
    if not time.endswith("Z"):
        time = _to_utc(time)
    seconds, _, fraction = time.rstrip("Z").partition(".")
    return f"{seconds}.{fraction:0<9}"


def _to_utc(time: str) -> str:
    """`2026-01-01T08:00:00.123456789+08:00` → `2026-01-01T00:00:00.123456789Z`; what is no time stays as it is."""
    seconds, rest = time[:19], time[19:]
    split = max(rest.find("+"), rest.find("-"))
    if split < 0:
        return time
    try:
        moment = datetime.datetime.fromisoformat(seconds + rest[split:]).astimezone(datetime.timezone.utc)
    except ValueError:
        return time
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + rest[:split] + "Z"


def _query(member: Member, options: LogOptions, *, follow: bool, after: str) -> dict[str, str]:
    query = {"timestamps": "true", "container": member.container(options.container)}
    if not query["container"]:
        del query["container"]
    if follow:
        query["follow"] = "true"
    if options.previous:
        query["previous"] = "true"
    if after:
        query["sinceTime"] = order(after)[:19] + "Z"
    else:
        if options.tail is not None:
            query["tailLines"] = str(options.tail)
        if options.since is not None:
            query["sinceSeconds"] = str(max(1, int(options.since)))
    return query
