"""What cache servers and mounts are asked to do, as pure functions of the specs: mount options, imports, paths.

Paths come out absolute, as the cache servers see them. Keys of object stores never enter a URI: they travel beside it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from paddlecloud.api.folders import parts
from paddlecloud.api.sampleset import SampleSetSettings, Secret, uri_problem
from paddlecloud.controllers.node_folders import NodeFolders
from paddlecloud.controllers.sampledata import names
from paddlecloud.kube.resource import Object

DEFAULT_CACHE = "/dev/shm"  # noqa: S108 - the documented default, on the node
UNLIMITED_MIB = 1 << 30
FILE_SYSTEM_KEYS = ("name", "storage", "metaurl", "bucket")
"""What the Secret of a JuiceFS file system must have."""


class BadOptions(ValueError):
    """What was asked for cannot be turned into work; the message says what and why."""


def secret_values(secret: Object) -> dict[str, str]:
    """What is text in a Secret, trimmed: `echo … | base64` adds a newline that nobody meant."""
    values = {}
    for key, encoded in (secret.get("data") or {}).items():
        try:
            values[key] = base64.b64decode(encoded or "").decode().strip()
        except (binascii.Error, UnicodeDecodeError):
            continue  # a certificate or the like, which is none of ours
    return values


def credentials(values: Mapping[str, str]) -> dict[str, str]:
    """The keys of an object store in a Secret; empty for a public one."""
    return {key: values[key] for key in ("access-key", "secret-key", "session-token") if values.get(key)}


def cache_dirs(settings: SampleSetSettings) -> tuple[str, ...]:
    """Cache directories on a node, level by level."""
    levels = tuple(path.rstrip("/") or "/" for level in settings.levels for path in level.paths)
    if levels:
        return levels
    chosen = str(settings.mount_options.get("cache-dir") or "") or DEFAULT_CACHE
    return tuple(f"{path.rstrip('/')}/{settings.name.lower()}" for path in chosen.split(":") if path)


def mounted_cache_dirs(volume: Object | None) -> tuple[str, ...]:
    """Those that the options of a volume name; none for one without."""
    attributes = ((volume or {}).get("spec", {}).get("csi") or {}).get("volumeAttributes") or {}
    options = dict(item.strip().partition("=")[::2] for item in attributes.get("mountOptions", "").split(","))
    return tuple(path.rstrip("/") or "/" for path in options.get("cache-dir", "").split(":") if path)


def mounted_secret(volume: Object | None) -> Secret | None:
    """The Secret that a volume is mounted with."""
    ref = ((volume or {}).get("spec", {}).get("csi") or {}).get("nodePublishSecretRef") or {}
    return Secret(ref["name"], ref["namespace"]) if ref.get("name") and ref.get("namespace") else None


def mount_options(settings: SampleSetSettings) -> dict[str, str | bool]:
    """Options of the JuiceFS mount: the user's, with cache directories and size from the levels where these say."""
    size = sum(level.size_mib for level in settings.levels)
    options = {"cache-size": str(UNLIMITED_MIB), **settings.mount_options}
    options["cache-dir"] = ":".join(cache_dirs(settings))
    if size:
        options["cache-size"] = str(size)
    return options


def mount_option_text(options: Mapping[str, str | bool]) -> str:
    return ",".join(key if value is True else f"{key}={value}" for key, value in sorted(options.items()))


def sync_options(
    settings: SampleSetSettings,
    *,
    source: str = "",
    destination: str = "",
    options: Mapping[str, str | int] = {},
    sources: NodeFolders | None = None,
) -> dict[str, Any]:
    """An import into the set. Either both ends are directories (end in a slash) or neither is.

    `sources` says which folders may be read where pods see files of the machine. Such files are somebody else's: they
    are copied, and never deleted.
    """
    source = source or settings.uri
    if not source:
        raise BadOptions("the source is empty: say where the data comes from in spec.source.uri or syncOptions.source")
    if problem := uri_problem(source):
        raise BadOptions(f"source {source}: {problem}")
    if sources and source.startswith("file://"):
        if problem := source_problem(source, sources):
            raise BadOptions(problem)
        if _is_in_own_tmp(source, settings):
            raise BadOptions(
                f"source {source}: cache servers have a /tmp of their own, in which only the folder that a set names "
                "in spec.source.uri is mounted: copy the data to a folder outside of /tmp, or make a SampleSet of it"
            )
        if options.get("delete-src"):
            raise BadOptions("delete-src: files of this machine are copied and never deleted; delete them yourself")
    target = f"file://{names.data_dir(settings.name)}"
    if destination:
        target += "/" + destination.lstrip("/")
    if source.endswith("/") != target.endswith("/"):
        source, target = (text if text.endswith("/") else f"{text}/" for text in (source, target))
    return {**options, "source": source, "destination": target}


def _is_in_own_tmp(source: str, settings: SampleSetSettings) -> bool:
    """Whether a folder of this machine is out of the sight of cache servers, whose /tmp is their own."""
    mounted = parts(folder_of(settings.uri)) if settings.uri.startswith("file://") and not settings.no_sync else None
    found = parts(folder_of(source))
    return found[:1] == ["tmp"] and (mounted is None or found[: len(mounted)] != mounted)


def folder_of(source: str) -> str:
    """The path that a `file://` source names."""
    return "/" + source.removeprefix("file://").lstrip("/")


def source_problem(source: str, sources: NodeFolders | None) -> str:
    """Why a folder of this machine may not be imported; empty where it may, and for every other source."""
    if sources is None or not source.startswith("file://"):
        return ""
    problem = sources.problem(folder_of(source))
    return f"source {source}: {problem}" if problem else ""


def data_path(name: str, path: str) -> str:
    """A path inside the set, as cache servers see it."""
    return f"{names.data_dir(name)}/{path.lstrip('/')}"


def clear_paths(asked: Iterable[str], directories: Iterable[str]) -> list[str]:
    """Which cache directories to empty: those asked for, by their path on the node or in the server; else all."""
    mounts = {path: names.cache_dir(path) for path in directories}
    roots = sorted(mounts.values())
    found = []
    for path in asked:
        inside = path.rstrip("/")
        if ".." in inside.split("/"):
            raise BadOptions(f"clearOptions: {path} must not contain ..")
        for host, mount in mounts.items():
            if inside == host or inside.startswith(f"{host}/"):
                inside = mount + inside[len(host) :]
                break
        if inside in roots:
            inside += "/*"
        elif not any(inside.startswith(f"{root}/") for root in roots):
            raise BadOptions(f"clearOptions: {path} is in no cache directory: {', '.join((*mounts, *roots))}")
        found.append(inside)
    return found or [f"{root}/*" for root in roots]
