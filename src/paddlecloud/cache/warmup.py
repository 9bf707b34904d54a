"""Which files a server brings to its node: the ordered list of the set, divided among partitions by a strategy.

Every server comes to the same division by itself: the list is in one order everywhere, and strategies are functions of
the list's length (`cache.plan`). No servers wait for each other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

from paddlecloud.cache import plan
from paddlecloud.cache.confine import relative
from paddlecloud.cache.errors import BadOptions, WorkFailed
from paddlecloud.cache.manifest import File, leads_out
from paddlecloud.cache.options import WarmupOptions


def ordinal(hostname: str) -> int:
    """The partition a server serves: the number at the end of its pod's name."""
    match = re.search(r"-(\d+)$", hostname)
    return int(match[1]) if match else 0


def inner_paths(options: WarmupOptions, data: str) -> list[str]:
    """The asked-for paths from the data folder; "" is all of it."""
    return [relative(path, (data,))[1] for path in options.paths] or [""]


def listed(
    options: WarmupOptions, data: str, *, below: Callable[[str], Iterator[File]], look_up: Callable[[str], File | None]
) -> list[File]:
    """The files of a warm-up in their order: a list file's, else the asked-for paths'. Raises `WorkFailed`."""
    if options.file:
        return list(_from_list(options.file, data, look_up))
    files: list[File] = []
    seen: set[str] = set()
    for inner in inner_paths(options, data):
        found = [file for file in below(inner) if file.path not in seen]
        if not found and inner and not os.path.lexists(os.path.join(data, inner)):
            raise WorkFailed(f"{inner!r} is not in the set: nothing to warm up")
        seen.update(file.path for file in found)
        files += found
    return files


def _from_list(name: str, data: str, look_up: Callable[[str], File | None]) -> Iterator[File]:
    _, inner = relative(name, (data,))
    path = os.path.join(data, inner)
    if leads_out(path, data):
        raise WorkFailed(f"the list {name!r} is a link that leads out of the set")
    try:
        with open(path, errors="surrogateescape") as file:
            lines = [line.rstrip("\n") for line in file]
    except OSError as error:
        raise WorkFailed(f"the list {name!r} cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        # A line may be a path alone, or a path and a label as training lists have them.
        for text in (line, line.rpartition(" ")[0]):
            path = text.strip()
            if not path:
                continue
            try:
                wanted = relative(path, (data,))[1] if path.startswith("/") else relative(f"{data}/{path}", (data,))[1]
            except BadOptions as error:
                raise WorkFailed(f"line {number} of {name!r}: {error}") from error
            if (found := look_up(wanted)) is not None:
                yield found
                break
        else:
            if line.strip():
                raise WorkFailed(f"line {number} of {name!r}: {line!r} is not in the set")


def share_of(files: list[File], options: WarmupOptions, partition: int) -> list[File]:
    """The part of the list that belongs to one partition, in reading order."""
    if partition >= options.partitions:
        return []
    sampler = None
    if options.strategy_name == "sampler":
        sampler = plan.SamplerOptions(
            batch_size=options.batch_size,
            shuffle=options.shuffle,
            epochs=options.epochs,
            start_epoch=options.seed or 0,
            ranks_per_node=options.ranks_per_node,
            drop_last=options.drop_last,
        )
    shards = plan.warmup_shards(
        options.strategy_name,
        len(files),
        partitions=options.partitions,
        seed=options.seed or 0,
        sampler=sampler,
    )
    return [files[index] for index in shards[partition]]
