"""Events as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paddlecloud.api.paddlejob import gate
from paddlecloud.api.paddlejob.ending import ENDED_REASON
from paddlecloud.cli import times
from paddlecloud.cli.objects.events import DEADLINE, moment
from paddlecloud.kube.resource import Object

COLUMNS = ("Last seen", "Type", "Reason", "Object", "Message")


def rows(events: Sequence[Object], now: float, planned: Mapping[str, str]) -> list[list[object]]:
    """`planned` has the pods that were ended on purpose, by uid, and why."""
    lines: list[list[object]] = []
    for event in events:
        subject = event.get("involvedObject") or {}
        count = int((event.get("series") or {}).get("count") or event.get("count") or 1)
        first = event.get("firstTimestamp") or event["metadata"].get("creationTimestamp")
        seen = times.age(moment(event), now)
        if count > 1:
            seen = f"{seen} (x{count} over {times.age(first, now)})"
        about_whom = f"{str(subject.get('kind', '')).lower()}/{subject.get('name', '')}"
        kind, reason, message = event.get("type") or "Normal", event.get("reason") or "", event.get("message") or ""
        if others := gate.event_awaited(event):  # kubelets know no other word for the start barrier than a warning
            kind, reason, message = "Normal", "Waiting", others
        elif reason == DEADLINE and subject.get("uid") in planned:  # no user set that deadline
            kind, reason, message = "Normal", ENDED_REASON, planned[subject["uid"]]
        lines.append([seen, kind, reason, about_whom, " ".join(str(message).split())])
    return lines
