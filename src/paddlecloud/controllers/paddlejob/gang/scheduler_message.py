"""What a scheduler says about a gang that it does not let in.

Volcano writes conditions only on groups that it has queued; why a group is not even queued it reports in Events of the
group. They are asked for while a job waits there, every few seconds at most.
"""

from __future__ import annotations

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import EVENTS, Key, Object

ASK_EVERY = 3.0
_EMPTY_GANG = "0/0 tasks"
"""How Volcano begins the sentence that a group without pods has no pods: true, and no reason."""


def is_silent(group: Object) -> bool:
    """Whether a group waits to be queued and does not itself say for what."""
    status = group.get("status") or {}
    return (status.get("phase") or "Pending") == "Pending" and not status.get("conditions")


async def read(client: Client, group: Key) -> str:
    """The last thing that was said about a group; empty when nothing was, or when we may not know."""
    about = f"involvedObject.kind=PodGroup,involvedObject.name={group.name}"
    try:
        found = await client.list(EVENTS, group.namespace, field_selector=about)
    except ApiError:
        return ""  # the job waits for the same reason, only without its name
    said = sorted((_moment(event), str(event.get("message") or "")) for event in found.items)
    return next((text for _, text in reversed(said) if text and not text.startswith(_EMPTY_GANG)), "")


def _moment(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")
