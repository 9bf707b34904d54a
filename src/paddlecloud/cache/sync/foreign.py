"""Sources that only JuiceFS can read (HDFS, Ceph, Redis …): `juicefs sync`, with keys in its environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

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

_COUNTS = re.compile(r"(Found|copied|skipped|deleted): (\d+)")


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
    """JuiceFS compares sizes, or with `--update` times: without either option both are asked, one after the other, so
    that a newer file of the same size is copied as well. Only the last run deletes: after a run that has deleted
    at the source, the next would take the files for gone and delete them at the destination."""
    program = find_juicefs(environment)
    keys = {**environment, **credentials.environment(location.scheme)}
    runs = [options]
    if not (options.update or options.force_update):
        runs = [replace(options, delete_src=False, delete_dst=False), replace(options, update=True)]
    counted = []
    for each in runs:
        command = [program, "sync", *arguments(each), "--check-new", each.source, each.destination]
        text = run(command, task, environment=keys, credentials=credentials)
        counted.append({name: int(number) for name, number in _COUNTS.findall(text)})
    found = counted[0].get("copied", 0) + counted[0].get("skipped", 0)
    copies = [counts.get("copied", 0) for counts in counted]
    copied = max(copies) if options.dry else sum(copies)  # a dry run leaves to the second what the first has found
    task.progress.expect(0, counted[0].get("Found", 0))
    task.progress.report(files=found, skipped=max(0, found - copied))
    if options.delete_dst and not options.delete_src:  # it counts deletions on both sides together
        task.progress.deleted = counted[-1].get("deleted", 0)
