"""What can be done to an object from its page: commands of `pdc`, run with the credentials of the viewer.

An action is the command that its page shows: the same program does it, refuses it and reports on it, so there is one
way to do a thing. The page asks before it runs, as the command would on a terminal.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from paddlecloud.cli.objects import canary
from paddlecloud.kube.config import Config
from paddlecloud.kube.resource import PADDLEJOBS, PADDLESERVICES, SAMPLESETS, Object, Resource
from paddlecloud.kube.yamlio import dump
from paddlecloud.sdk.outcome import ending, service_failure
from paddlecloud.ui.sessions import Identity

SECONDS = 60.0
MOST_OUTPUT = 64 * 1024


class Action(NamedTuple):
    """`offered` decides by the object whether it makes sense now; the command itself decides."""

    name: str
    words: Callable[[Object], Sequence[str]]
    """Of the command, without `pdc` and the namespace."""
    offered: Callable[[Object], bool]
    change: Callable[[Object], str] = lambda _: ""
    """What of the object it changes, as YAML; empty where the command decides."""
    destroys: bool = False
    undo: str = ""
    """The action that takes it back."""


SHORT = {"paddleservice": "pds"}
"""Of kinds whose long name means another group's, too."""


def _subject(obj: Object) -> str:
    kind = str(obj["kind"]).lower()
    return f"{SHORT.get(kind, kind)}/{obj['metadata']['name']}"


def _suspended(obj: Object) -> bool:
    return bool((obj.get("spec") or {}).get("suspend"))


def _canary(service: Object) -> Object:
    return (service.get("spec") or {}).get("canary") or {}


_DELETE = Action("delete", lambda obj: ["delete", _subject(obj)], lambda _: True, destroys=True)

ACTIONS: Mapping[str, tuple[Resource, tuple[Action, ...]]] = {
    "jobs": (
        PADDLEJOBS,
        (
            Action(
                "suspend",
                lambda obj: ["suspend", _subject(obj)],
                lambda obj: ending(obj) is None and not _suspended(obj),
                change=lambda _: "spec:\n  suspend: true",
                undo="resume",
            ),
            Action(
                "resume",
                lambda obj: ["resume", _subject(obj)],
                lambda obj: ending(obj) is None and _suspended(obj),
                change=lambda _: "spec:\n  suspend: false",
                undo="suspend",
            ),
            Action("retry", lambda obj: ["retry", _subject(obj)], lambda obj: ending(obj) is not None),
            _DELETE,
        ),
    ),
    "samplesets": (SAMPLESETS, (_DELETE,)),
    "services": (
        PADDLESERVICES,
        (
            Action(
                "promote",
                lambda service: ["promote", str(service["metadata"]["name"])],
                lambda service: bool(_canary(service)),
                change=lambda service: dump({"spec": canary.promotion(service, _canary(service))}),
                undo="rollback",
            ),
            Action(
                "rollback",
                lambda service: ["rollback", str(service["metadata"]["name"])],
                lambda service: bool(_canary(service)) or int(service["metadata"].get("generation") or 0) > 1,
                change=lambda service: dump({"spec": canary.WITHDRAWAL}) if _canary(service) else "",
            ),
            Action(
                "retry",
                lambda service: ["retry", _subject(service)],
                lambda service: service_failure(service, "Ready") is not None,
            ),
            _DELETE,
        ),
    ),
}
"""First segment of the page's path → the kind of its objects, and what can be done to them."""


class Outcome(NamedTuple):
    code: int
    output: str

    @property
    def ok(self) -> bool:
        return self.code == 0


def offered(section: str, obj: Object) -> list[Action]:
    return [action for action in ACTIONS[section][1] if action.offered(obj)]


def find(section: str, name: str) -> tuple[Resource, Action] | None:
    resource, actions = ACTIONS.get(section, (None, ()))
    action = next((action for action in actions if action.name == name), None)
    return (resource, action) if resource is not None and action is not None else None


def command(words: Sequence[str], namespace: str | None) -> str:
    """For people, to copy."""
    return shlex.join(["pdc", *words, *(["-n", namespace] if namespace else [])])


async def run(identity: Identity, words: Sequence[str], namespace: str | None) -> Outcome:
    """The command in a process of its own, with a kubeconfig that is deleted when it ends."""
    arguments = [sys.executable, "-m", "paddlecloud.cli.main", *words, "-y"]
    arguments += ["-n", namespace] if namespace else []
    with tempfile.TemporaryDirectory(prefix="pdc-dashboard-") as folder:
        flags = identity.flags or await asyncio.to_thread(_write, Path(folder) / "kubeconfig", identity.config)
        process = await asyncio.create_subprocess_exec(
            *arguments, *flags,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "NO_COLOR": "1"},
        )  # fmt: skip
        try:
            output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
            return Outcome(124, f"it did not end within {SECONDS:g} s")
    return Outcome(process.returncode or 0, output[:MOST_OUTPUT].decode(errors="replace"))


def _write(path: Path, config: Config) -> tuple[str, ...]:
    """Of a caller that is known by a token."""
    import base64

    credential = config.source.peek() or config.source.fetch()
    cluster = {"server": config.server, "insecure-skip-tls-verify": config.insecure}
    if config.ca:
        cluster["certificate-authority-data"] = base64.b64encode(config.ca).decode()
    token = (credential.authorization or "").partition(" ")[2]
    body = {
        "apiVersion": "v1", "kind": "Config", "current-context": "dashboard",
        "clusters": [{"name": "dashboard", "cluster": cluster}],
        "users": [{"name": "dashboard", "user": {"token": token}}],
        "contexts": [{"name": "dashboard", "context": {"cluster": "dashboard", "user": "dashboard"}}],
    }  # fmt: skip
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as target:
        target.write(msgspec.json.encode(body))
    return ("--kubeconfig", str(path))
