"""Objects whose every text is an attack, and a page drawn with them: what a user controls must arrive as text."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from paddlecloud.kube.resource import Object

NOW = 1_790_000_000.0
ATTACK = """"'><script>alert(1)</script><img src=x onerror=alert(2)>{{70007*70001}}javascript:alert(3)&lt;"""
"""Ends attributes of both quotes and elements, is a template, an address and an entity that must stay one."""


def poisoned(value: Any) -> Any:
    """The object with the attack at the end of its texts; names, numbers and times stay: the API checks them."""
    if isinstance(value, dict):
        return {key: inner if key in _CHECKED else poisoned(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [poisoned(inner) for inner in value]
    return value + ATTACK if isinstance(value, str) else value


_TIMES = ("time", "since", "nextStepTime", "createdAt", "at", "changedAt", "finishedAt")
_CHECKED = frozenset(
    ("name", "namespace", "uid", "kind", "apiVersion", "creationTimestamp", "time", "startTime", "completionTime")
) | frozenset(
    (
        "lastTransitionTime",
        "startedAt",
        "resourceVersion",
        "nodeName",
        "labels",
        "phase",
        "status",
        "type",
        "engine",
        *_TIMES,
    )
)


class Markup(HTMLParser):
    """What a browser would find in a page: scripts, handlers, styles and addresses that no template wrote."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.images: list[str] = []
        self.text = ""
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
        if tag == "script":
            self._in_script = True
            self.scripts.append(dict(attrs).get("src") or "")
        if tag == "img":
            self.images.append(dict(attrs).get("src") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script and data.strip():
            self.scripts.append(data)
        self.text += data


def check(html: str) -> Markup:
    """Raises where anything but text came of the attack."""
    found = Markup()
    found.feed(html)
    assert [script for script in found.scripts if not script.startswith("/-/static/")] == []
    assert [image for image in found.images if not image.startswith("/-/static/")] == []
    handlers = [(tag, name) for tag, name, _ in found.attributes if name.startswith("on") or name == "style"]
    assert handlers == []
    addresses = [value for _, name, value in found.attributes if name in ("href", "src", "action", "formaction")]
    assert [address for address in addresses if not address.startswith(("/", "#"))] == []
    assert "49javascript" not in found.text, "a template was evaluated"
    return found


def job(name: str = "words", **status: Any) -> Object:
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "5",
            "creationTimestamp": "2026-09-21T14:00:00Z",
            "labels": {"team": "vision"},
        },
        "spec": {"worker": {"replicas": 2}, "schedulingPolicy": {"queue": "batch"}},
        "status": {"phase": "Running", "startTime": "2026-09-21T14:00:10Z", **status},
    }


def pod(of: Object, index: int = 0, **status: Any) -> Object:
    meta = of["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{meta['name']}-worker-{index}",
            "namespace": meta["namespace"],
            "uid": f"{meta['uid']}-{index}",
            "resourceVersion": "7",
            "creationTimestamp": "2026-09-21T14:00:01Z",
            "labels": {
                "paddlepaddle.org/job-name": meta["name"],
                "paddlepaddle.org/role": "worker",
                "paddlepaddle.org/index": str(index),
            },
            "ownerReferences": [{"kind": "PaddleJob", "name": meta["name"], "uid": meta["uid"], "controller": True}],
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "train", "image": "paddle:3"}]},
        "status": {"phase": "Running", **status},
    }


def event(about: Object, reason: str, message: str) -> Object:
    meta = about["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name']}.1", "namespace": meta["namespace"], "uid": "e", "resourceVersion": "9"},
        "involvedObject": {"kind": about["kind"], "name": meta["name"], "uid": meta["uid"]},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": "2026-09-21T14:00:05Z",
    }
