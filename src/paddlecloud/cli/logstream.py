"""The lines of pods' logs with their times: of one pod, of several merged, and from where a broken stream left off.

Times are always asked of the server, because merging and resuming need them; the printer leaves them out again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paddlecloud.cli.api import Api
from paddlecloud.cli.members import Member
from paddlecloud.kube.resource import PODS
from paddlecloud.kube.transport import split_lines

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


class Line(NamedTuple):
    time: str
    member: Member
    text: str


class Options(NamedTuple):
    tail: int | None = None
    since: float | None = None
    previous: bool = False
    container: str | None = None


def read(api: Api, member: Member, options: Options, *, follow: bool = False, after: str = "") -> Iterator[Line]:
    """Lines as they come. `after` resumes: the server filters by whole seconds, the rest is filtered here."""
    meta = member.pod["metadata"]
    path = PODS.path(meta.get("namespace"), meta["name"], "log")
    stream = api.client.stream(path, query=_query(member, options, follow=follow, after=after), accept="*/*")
    last = after
    for raw in api.each(split_lines(stream)):
        time, _, text = raw.decode(errors="replace").partition(" ")
        if not time[:4].isdigit() or "T" not in time:
            time, text = last, f"{time} {text}".rstrip()  # a runtime that stamps no times
        elif after and time <= after:
            continue
        last = time
        yield Line(time, member, text)


def merged(api: Api, members: Sequence[Member], options: Options) -> Iterator[Line]:
    """All lines there are now, ordered by time."""
    import heapq

    return heapq.merge(*(read(api, member, options) for member in members), key=lambda line: line.time)


def container_of(member: Member, asked: str | None) -> str:
    """The container meant: asked for, marked as default, or the first."""
    if asked:
        return asked
    annotations = member.pod["metadata"].get("annotations") or {}
    containers = (member.pod.get("spec") or {}).get("containers") or [{}]
    return str(annotations.get(DEFAULT_CONTAINER) or containers[0].get("name") or "")


def _query(member: Member, options: Options, *, follow: bool, after: str) -> dict[str, str]:
    query = {"timestamps": "true", "container": container_of(member, options.container)}
    if not query["container"]:
        del query["container"]
    if follow:
        query["follow"] = "true"
    if options.previous:
        query["previous"] = "true"
    if after:
        query["sinceTime"] = after[:19] + "Z"
    else:
        if options.tail is not None:
            query["tailLines"] = str(options.tail)
        if options.since is not None:
            query["sinceSeconds"] = str(max(1, int(options.since)))
    return query
