"""Objects from what `-f` names: files, directories, standard input; YAML with many documents, JSON, Lists.

Everything is read and checked before anything is sent, so a mistake in the last file changes nothing.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from typing import NamedTuple

from paddlecloud.cli.failures import InputError, UsageError
from paddlecloud.kube.resource import Object
from paddlecloud.kube.wording import cause_of
from paddlecloud.kube.yamlio import YamlError, read_all

SUFFIXES = (".yaml", ".yml", ".json")
MAX_BYTES = 32 << 20

STANDARD_INPUT = "standard input"
FIRST = {"Namespace": 0, "CustomResourceDefinition": 1}
"""What other objects live in or are made of goes first, whatever the order of the files."""


class ManifestDocument(NamedTuple):
    object: Object
    file: str
    """As messages call it."""
    line: int
    """Where its document begins."""
    inside: str
    """Its path in the document; empty unless it is an item of a List."""
    text: str
    """Of the whole file."""

    @property
    def source(self) -> str:
        """`file.yaml:12`, for messages."""
        return f"{self.file}:{self.line}"

    @property
    def argument(self) -> str:
        """What `-f` takes, for a command line."""
        return "-" if self.file == STANDARD_INPUT else shlex.quote(self.file)

    @property
    def label(self) -> str:
        meta = self.object["metadata"]
        return f"{self.object['kind']}/{meta.get('name') or meta.get('generateName')}"


def load(names: list[str], *, recursive: bool = False) -> list[ManifestDocument]:
    """All objects in the order they are to be applied."""
    if not names:
        raise UsageError("nothing to read", why="-f names no file, directory or -")
    manifests: list[ManifestDocument] = []
    mistakes: list[InputError] = []
    for name in names:
        for path in expand(name, recursive=recursive):
            found, wrong = parse(path, read(path))
            manifests += found
            mistakes += wrong
    if mistakes:
        raise _together(mistakes)
    if not manifests:
        raise InputError(f"no objects in {', '.join(names)}", next="check that the files are not empty")
    return sorted(manifests, key=lambda manifest: FIRST.get(manifest.object["kind"], 2))


def expand(name: str, *, recursive: bool) -> list[str]:
    """The files a `-f` argument stands for, in a stable order."""
    if name == "-":
        return [name]
    if "://" in name:
        raise UsageError(
            f"{name} is an address", why="-f reads files, directories and -", next=f"curl -sL {name} | pdc apply -f -"
        )
    if not os.path.exists(name):
        raise UsageError(f'cannot read "{name}"', why="no such file or directory", next=f"ls {_parent(name)}")
    if not os.path.isdir(name):
        return [name]
    found = []
    for folder, folders, files in os.walk(name):
        folders.sort()
        found += [os.path.join(folder, file) for file in sorted(files) if file.endswith(SUFFIXES)]
        if not recursive:
            break
    if not found:
        why = f"none of its files ends in {', '.join(SUFFIXES)}"
        raise UsageError(f'nothing to apply in "{name}"', why=why, next=f"pdc apply -R -f {name}")
    return found


def read(path: str) -> str:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f'cannot read "{path}"', why=cause_of(error), next=f"ls -l {path}") from error
    if len(data) > MAX_BYTES:
        raise InputError(f"{path} is too large", why=f"more than {MAX_BYTES >> 20} MiB", next="split the file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text", why=f"byte {error.start} is not UTF-8") from error


def parse(path: str, text: str) -> tuple[list[ManifestDocument], list[InputError]]:
    """The objects of one text, Lists unfolded, each with at least apiVersion, kind and a name; and all its mistakes."""
    file = STANDARD_INPUT if path == "-" else path
    documents, unreadable = read_all(text)
    manifests: list[ManifestDocument] = []
    mistakes = [_not_yaml(file, error) for error in unreadable]
    for line, value in documents:
        for found in _unfold(ManifestDocument(value, file, line, "", text)):
            if isinstance(found, ManifestDocument):
                manifests.append(found)
            else:
                mistakes.append(found)
    return manifests, mistakes


def _not_yaml(file: str, error: YamlError) -> InputError:
    return InputError(
        f"{file}:{error.line} is not valid YAML", why=error.problem, next=f"look at line {error.line} of {file}"
    )


def _together(mistakes: list[InputError]) -> InputError:
    if len(mistakes) == 1:
        return mistakes[0]
    listed = "".join(f"\n  {one.message}{': ' if one.why else ''}{one.why}" for one in mistakes)
    return InputError(f"{len(mistakes)} mistakes; nothing was sent{listed}", next="correct these lines")


def _unfold(manifest: ManifestDocument) -> Iterator[ManifestDocument | InputError]:
    value: object = manifest.object
    source = manifest.source
    if not isinstance(value, dict):
        yield InputError(f"{source} is not an object", why=f"it holds a {type(value).__name__}, not a mapping")
        return
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            yield InputError(f"{source} is not a Kubernetes object", why=f"{field} is missing or not text")
            return
    items = value.get("items")
    if value["kind"].endswith("List") and isinstance(items, list):
        for number, item in enumerate(items):
            yield from _unfold(manifest._replace(object=item, inside=f"{manifest.inside}.items[{number}]"))
        return
    meta = value.get("metadata")
    if not isinstance(meta, dict) or not (meta.get("name") or meta.get("generateName")):
        yield InputError(f"{source}: {value['kind']} has no name", why="metadata.name is missing")
    elif not isinstance(meta.get("name") or meta.get("generateName"), str):
        yield InputError(f"{source}: {value['kind']} has no usable name", why='a name is text; quote it: name: "123"')
    else:
        yield manifest


def _parent(path: str) -> str:
    return os.path.dirname(path) or "."
