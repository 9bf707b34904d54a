"""Objects from what `-f` names: files, directories, standard input; YAML with many documents, JSON, Lists.

Everything is read and checked before anything is sent, so a mistake in the last file changes nothing.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from paddlecloud.cli.failures import InputError, UsageError
from paddlecloud.kube.resource import Object
from paddlecloud.kube.yamlio import YamlError, load_all

SUFFIXES = (".yaml", ".yml", ".json")
MAX_BYTES = 32 << 20

FIRST = {"Namespace": 0, "CustomResourceDefinition": 1}
"""What other objects live in or are made of goes first, whatever the order of the files."""


class Manifest(NamedTuple):
    object: Object
    source: str
    """`file.yaml:12`, for messages."""

    @property
    def label(self) -> str:
        meta = self.object["metadata"]
        return f"{self.object['kind']}/{meta.get('name') or meta.get('generateName')}"


def load(names: list[str], *, recursive: bool = False) -> list[Manifest]:
    """All objects in the order they are to be applied."""
    if not names:
        raise UsageError("nothing to read", why="-f names no file, directory or -")
    manifests = [
        manifest for name in names for path in expand(name, recursive=recursive) for manifest in parse(path, read(path))
    ]
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
        raise UsageError(f'cannot read "{path}"', why=error.strerror or str(error), next=f"ls -l {path}") from error
    if len(data) > MAX_BYTES:
        raise InputError(f"{path} is too large", why=f"more than {MAX_BYTES >> 20} MiB", next="split the file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text", why=f"byte {error.start} is not UTF-8") from error


def parse(path: str, text: str) -> list[Manifest]:
    """The objects of one text, Lists unfolded, each with at least apiVersion, kind and a name."""
    source = "standard input" if path == "-" else path
    manifests: list[Manifest] = []
    try:
        for line, value in load_all(text):
            manifests += _unfold(value, f"{source}:{line}")
    except YamlError as error:
        raise InputError(
            f"{source}:{error.line} is not valid YAML", why=error.problem, next=f"look at line {error.line} of {source}"
        ) from error
    return manifests


def _unfold(value: object, source: str) -> list[Manifest]:
    if not isinstance(value, dict):
        raise InputError(f"{source} is not an object", why=f"it holds a {type(value).__name__}, not a mapping")
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            raise InputError(f"{source} is not a Kubernetes object", why=f"{field} is missing or not text")
    items = value.get("items")
    if value["kind"].endswith("List") and isinstance(items, list):
        return [manifest for item in items for manifest in _unfold(item, source)]
    meta = value.get("metadata")
    if not isinstance(meta, dict) or not (meta.get("name") or meta.get("generateName")):
        raise InputError(f"{source}: {value['kind']} has no name", why="metadata.name is missing")
    if not isinstance(meta.get("name") or meta.get("generateName"), str):
        raise InputError(f"{source}: {value['kind']} has no usable name", why='a name is text; quote it: name: "123"')
    return [Manifest(value, source)]


def _parent(path: str) -> str:
    return os.path.dirname(path) or "."
