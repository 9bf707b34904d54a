"""What can be done to an object from its page: commands of `pdc`, run with the credentials of the viewer.

An action is the command that its page shows: the same program does it, refuses it and reports on it, so there is one
way to do a thing. The page asks before it runs, as the command would on a terminal.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from paddlecloud.kube.config import Config
from paddlecloud.kube.interpreter import program_of_module
from paddlecloud.kube.resource import Object
from paddlecloud.local.privatefiles import write_private
from paddlecloud.modelhub.names import VARIABLE as HUB
from paddlecloud.ui.sessions import Identity

SECONDS = 60.0
MOST_OUTPUT = 64 * 1024
LONGEST_VALUE = 4096
"""Characters of a field."""


Values = Mapping[str, str]
"""Field → what the viewer chose."""


class Field(NamedTuple):
    """Something that the viewer chooses before the command is shown."""

    name: str
    default: str = ""
    choices: tuple[str, ...] = ()
    """Suggestions; another value may be typed in."""
    required: bool = False
    label: str = ""
    """Of a field that the words of pages do not know, such as a parameter of a pipeline."""


def no_fields(_: Object) -> tuple[Field, ...]:
    return ()


class Action(NamedTuple):
    """`offered` decides by the object whether it makes sense now; the command itself decides."""

    name: str
    words: Callable[[Object, Values], Sequence[str]]
    """Of the command, without `pdc` and the namespace. What a viewer typed in stands behind `--flag=`, or in a word
    that begins with a name of the object: nothing of it becomes a flag."""
    offered: Callable[[Object], bool]
    change: Callable[[Object, Values], str] = lambda _obj, _values: ""
    """What of the object it changes, as YAML; empty where the command decides."""
    destroys: bool = False
    undo: str = ""
    """The action that takes it back, with the values of the fields that both have."""
    fields: Callable[[Object], tuple[Field, ...]] = no_fields

    def values(self, obj: Object, given: Values) -> dict[str, str]:
        """Of its fields, and of nothing else; each is one line."""
        return {one.name: _one_line(given.get(one.name, one.default)) for one in self.fields(obj)}

    def is_complete(self, obj: Object, values: Values) -> bool:
        return all(values[one.name] for one in self.fields(obj) if one.required)


def _one_line(text: str) -> str:
    """The command is one line of the log, and no argument has a NUL."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text).strip()[:LONGEST_VALUE]


class Outcome(NamedTuple):
    code: int
    output: str

    @property
    def ok(self) -> bool:
        return self.code == 0


def command(words: Sequence[str], namespace: str | None) -> str:
    """For people, to copy."""
    return shlex.join(["pdc", *words, *(["-n", namespace] if namespace else [])])


async def run(identity: Identity, words: Sequence[str], namespace: str | None) -> Outcome:
    """The command in a process of its own, with a kubeconfig that is deleted when it ends."""
    arguments = [sys.executable, "-c", program_of_module("paddlecloud.cli.main"), *words, "-y"]
    arguments += ["-n", namespace] if namespace else []
    with tempfile.TemporaryDirectory(prefix="pdc-dashboard-") as folder:
        flags = identity.flags or await asyncio.to_thread(_write, Path(folder) / "kubeconfig", identity.config)
        process = await asyncio.create_subprocess_exec(
            *arguments, *flags,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env={**environment(identity, os.environ), "NO_COLOR": "1"},
        )  # fmt: skip
        try:
            output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
            return Outcome(124, f"it did not end within {SECONDS:g} s")
    return Outcome(process.returncode or 0, output[:MOST_OUTPUT].decode(errors="replace"))


_PASSED_ON = re.compile(
    r"PATH|HOME|TMPDIR|TZ|LANG|LANGUAGE|LC_.*|PYTHON.*|SSL_CERT_(FILE|DIR)|(HTTPS?|ALL|NO)_PROXY|(https?|all|no)_proxy|"
    rf"PADDLECLOUD_HOME|{HUB}"
)


def environment(identity: Identity, own: Mapping[str, str]) -> dict[str, str]:
    """Variables of the command. Only the user who runs the dashboard gets all of them: others would act with what lends
    rights, such as the keys of a store of models."""
    return {name: value for name, value in own.items() if identity.flags or _PASSED_ON.fullmatch(name)}


def _write(path: Path, config: Config) -> tuple[str, ...]:
    """Of a caller that is known by a token."""
    import base64

    credential = config.source.peek() or config.source.fetch()
    cluster = {"server": config.server, "insecure-skip-tls-verify": config.insecure}
    if config.ca:
        cluster["certificate-authority-data"] = base64.b64encode(config.ca).decode()
    body = {
        "apiVersion": "v1", "kind": "Config", "current-context": "dashboard",
        "clusters": [{"name": "dashboard", "cluster": cluster}],
        "users": [{"name": "dashboard", "user": {"token": credential.token}}],
        "contexts": [{"name": "dashboard", "context": {"cluster": "dashboard", "user": "dashboard"}}],
    }  # fmt: skip
    write_private(path, msgspec.json.encode(body))
    return ("--kubeconfig", str(path))
