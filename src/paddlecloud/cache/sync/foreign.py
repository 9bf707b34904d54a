"""Sources that only JuiceFS can read (HDFS, Ceph, Redis …): `juicefs sync`, with keys in its environment."""

from __future__ import annotations

import re
from collections.abc import Mapping

from paddlecloud.cache.options import SyncOptions
from paddlecloud.cache.programs import find_juicefs, run
from paddlecloud.cache.progress import Task
from paddlecloud.storage.credentials import Credentials
from paddlecloud.storage.uri import Location

_FLAGS = (
    ("start", "start"),
    ("end", "end"),
    ("threads", "threads"),
    ("update", "update"),
    ("force_update", "force-update"),
    ("perms", "perms"),
    ("dirs", "dirs"),
    ("dry", "dry"),
    ("delete_src", "delete-src"),
    ("delete_dst", "delete-dst"),
    ("include", "include"),
    ("exclude", "exclude"),
    ("manager", "manager-addr"),
    ("worker", "worker"),
    ("bwlimit", "bwlimit"),
    ("no_https", "no-https"),
)
"""Our options and their names in JuiceFS today; includes come before excludes, whose order matters to it."""

_COUNTS = re.compile(r"(Found|copied|skipped): (\d+)")


def arguments(options: SyncOptions) -> list[str]:
    """Only what differs from nothing, as one argument each: no text can become another flag."""
    found: list[str] = []
    for name, flag in _FLAGS:
        value = getattr(options, name)
        for item in value if isinstance(value, tuple) else (value,):
            if item is True:
                found.append(f"--{flag}")
            elif item:
                found.append(f"--{flag}={item}")
    return found


def sync_with_juicefs(
    options: SyncOptions, location: Location, credentials: Credentials, task: Task, *, environment: Mapping[str, str]
) -> None:
    program = find_juicefs(environment)
    keys = credentials.environment(location.scheme)
    command = [program, "sync", *arguments(options), "--check-new", options.source, options.destination]
    text = run(command, task, environment={**environment, **keys}, credentials=credentials)
    counts = {name: int(number) for name, number in _COUNTS.findall(text)}
    task.progress.expect(0, counts.get("Found", 0))
    task.progress.report(files=counts.get("copied", 0) + counts.get("skipped", 0), skipped=counts.get("skipped", 0))
