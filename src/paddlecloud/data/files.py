"""Files of a data set, read through the node's cache.

    files = Files.listed("train.txt")                     # in the order of the Dataset's indices

    class Images(paddle.io.Dataset):
        def __len__(self): return len(files)
        def __getitem__(self, index): return decode(files.read(index))

    sampler = paddle.io.DistributedBatchSampler(Images(), batch_size=64, shuffle=True)
    loader = paddle.io.DataLoader(Images(), batch_sampler=sampler, num_workers=2)
    files.follow(sampler, epochs=90)                      # fetch ahead of it, drop what is needed last
    for epoch in range(90):
        for batch in files.watch(loader):                 # time spent waiting is reported to the job
            ...

`read` is all that is needed. Where there is no cache it reads the file where it lies; `follow` and `watch` then cost
nothing and change nothing. The cache, its keeper and the figures never fail the training: what cannot be cached is read
directly, and only a file that cannot be read at all raises.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from paddlecloud.data import report
from paddlecloud.data.cache_folders import CacheFolders, is_inside
from paddlecloud.data.origin import is_remote, origin_at
from paddlecloud.data.tally import Epoch, Tally

LOG = logging.getLogger("paddlecloud.data")
DATA, CACHE, QUOTA = "PADDLECLOUD_DATA_DIR", "PADDLECLOUD_CACHE_DIR", "PADDLECLOUD_CACHE_BYTES"
PEER_PORT = "PADDLECLOUD_PEER_PORT"
"""Set for jobs whose nodes together hold what none of them can."""
ENDPOINTS = "PADDLE_TRAINER_ENDPOINTS"
"""Paddle's own: `host:port` of every rank, joined by commas."""
_EPOCHS_REPORTED = 10
"""Epochs whose figures are reported; older ones are in the sum."""


class Files:
    """Make it in the main process: workers inherit it, and their reads are counted there."""

    def __init__(
        self, paths: Iterable[str], *, data: str | None = None, cache: str | None = None, quota: int | None = None
    ) -> None:
        """`paths` are below `data`, a folder or the URL of a server; `cache` is the node's folder for this set.

        Both come from the environment when left out (`PADDLECLOUD_DATA_DIR`, `PADDLECLOUD_CACHE_DIR`). `quota` is how
        many bytes the cache may take (`PADDLECLOUD_CACHE_BYTES`, else most of the free disk).
        """
        data = _data_folder(data)
        cache = cache or os.environ.get(CACHE)
        self._place = CacheFolders(cache) if cache else None
        self._data, self._origin = data, origin_at(data)
        self._quota = _quota(quota)
        self._paths = [_below(path, data) for path in paths]
        self._sampler: Any = None
        self._begun = 0
        self._tally: Tally | None = Tally(partial(_report_epochs, next(_numbers)))
        atexit.register(self._tally.finish)

    @classmethod
    def listed(cls, file: str, **places: Any) -> Files:
        """The paths of a list or label file below the data folder: the first word of each line."""
        content = origin_at(_data_folder(places.get("data"))).read(file).decode()
        return cls([line.split()[0] for line in content.splitlines() if line.strip()], **places)

    @classmethod
    def walk(cls, folder: str = "", **places: Any) -> Files:
        """All files of a folder below the data folder, sorted; what begins with a dot is left out."""
        root = _data_folder(places.get("data"))
        found = []
        for where, folders, files in os.walk(os.path.join(root, folder)):
            folders[:] = [name for name in folders if not name.startswith(".")]
            found += [os.path.join(where, name) for name in files if not name.startswith(".")]
        return cls(sorted(found), **places)

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> str:
        """The path below the data folder."""
        return self._paths[index]

    def read(self, index: int) -> bytes:
        """The content of a file."""
        began = time.perf_counter()
        path, place = self._paths[index], self._place
        content = place.read(path) if place else None
        hit = content is not None if place else None
        if content is None and place and is_inside(path):
            place.await_incoming(path)
            content = place.read(path)  # it may have arrived between the two looks
        if content is None:
            content = self._origin.read(path)
        if self._tally is not None:
            self._tally.note(index % len(self._paths), time.perf_counter() - began, hit=hit)
        return content

    def follow(self, sampler: Any, *, epochs: int, threads: int = 4, peers: Sequence[str] | int | None = None) -> None:
        """Fetch what Paddle's `DistributedBatchSampler` will ask for, ahead of it, for so many epochs from now.

        With `peers` nodes pass samples on to their next reader, and ask the origin only for what none of them has. They
        are `host:port` of every rank, or a port that is free in all pods of a job whose ranks have a pod each. Where
        they are left out the job decides (`PADDLECLOUD_PEER_PORT`); an empty list forbids it.
        """
        self._sampler = sampler
        if self._tally is None or (self._place is None and not is_remote(self._data)):
            return
        try:
            self._follow(sampler, epochs=epochs, threads=threads, peers=_addresses(peers))
        except Exception as error:
            LOG.warning("no prefetching, samples are read where they lie: %r", error)

    def _follow(self, sampler: Any, *, epochs: int, threads: int, peers: Sequence[str]) -> None:
        from paddlecloud.cache.plan.sampler import SamplerOptions
        from paddlecloud.cache.plan.schedule import Schedule
        from paddlecloud.data.ahead import Ahead
        from paddlecloud.data.keeper import Keeper
        from paddlecloud.data.peers import Peers
        from paddlecloud.data.track import Track

        assert self._tally is not None
        options = SamplerOptions(
            batch_size=sampler.batch_size,
            shuffle=sampler.shuffle,
            epochs=epochs,
            start_epoch=self._epoch_to_come(),
            drop_last=sampler.drop_last,
        )
        schedule = Schedule(len(self._paths), sampler.nranks, options)
        track = Track(schedule, sampler.local_rank)
        self._tally.follow(track)
        rank = sampler.local_rank
        if self._place is None:
            Ahead(self._paths, schedule=schedule, rank=rank, track=track, origin=self._origin, threads=threads).start()
            return
        Keeper(
            self._paths,
            schedule=schedule,
            rank=rank,
            track=track,
            origin=self._origin,
            place=self._place,
            quota=self._quota,
            threads=threads,
            peers=Peers(peers, rank, os.environ.get(report.TOKEN, "")) if peers else None,
        ).start()

    def watch(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The batches of one epoch of a loader, with the time that the loop waits for them counted."""
        if self._tally is not None:
            self._tally.begin(self._epoch_to_come())
        self._begun += 1
        batches = iter(loader)
        while True:
            began = time.perf_counter()
            try:
                batch = next(batches)
            except StopIteration:
                return
            finally:
                if self._tally is not None:
                    self._tally.waited(time.perf_counter() - began)
            yield batch

    def figures(self) -> dict[int, Epoch]:
        """Hits, misses and waiting so far, by epoch."""
        return self._tally.epochs() if self._tally is not None else {}

    def _epoch_to_come(self) -> int:
        """A sampler that shuffles counts its epochs itself, and seeds with the count."""
        return int(self._sampler.epoch) if getattr(self._sampler, "shuffle", False) else self._begun

    def __getstate__(self) -> dict[str, Any]:
        """For loaders that send the dataset to their workers instead of forking: what they read is not counted."""
        return {**vars(self), "_tally": None, "_sampler": None}


def _data_folder(given: str | None) -> str:
    return given or os.environ.get(DATA) or os.getcwd()


def _quota(given: int | None) -> int | None:
    if given is not None:
        return given
    try:
        return int(os.environ[QUOTA])
    except (KeyError, ValueError):
        return None


def _addresses(peers: Sequence[str] | int | None) -> Sequence[str]:
    if peers is None:
        peers = int(os.environ.get(PEER_PORT) or 0) or ()
    if not isinstance(peers, int):
        return peers
    hosts = [endpoint.rpartition(":")[0] for endpoint in os.environ[ENDPOINTS].split(",")]
    return [f"{host}:{peers}" for host in hosts]


def _below(path: str, data: str) -> str:
    """A path relative to the data folder. One that leads out of it stays absolute, and is not cached."""
    if data.startswith(("http://", "https://")):
        return path
    whole = os.path.normpath(os.path.join(data, path))
    relative = os.path.relpath(whole, data)
    return os.path.abspath(whole) if relative.split(os.sep, 1)[0] == os.pardir else relative


_numbers = itertools.count()
_epochs_of_process: dict[int, dict[int, Epoch]] = {}
"""What each `Files` of this process has counted: a program may train with one and evaluate with another."""


def _report_epochs(number: int, epochs: dict[int, Epoch]) -> None:
    _epochs_of_process[number] = epochs
    together: dict[int, Epoch] = {}
    for one in list(_epochs_of_process.values()):
        for epoch, read in one.items():
            sum_of = together.setdefault(epoch, Epoch())
            sum_of.hits += read.hits
            sum_of.misses += read.misses
            sum_of.stall_seconds += read.stall_seconds
    report.cache(
        hits=sum(epoch.hits for epoch in together.values()),
        misses=sum(epoch.misses for epoch in together.values()),
        stall_seconds=sum(epoch.stall_seconds for epoch in together.values()),
        epochs={epoch: vars(together[epoch]) for epoch in sorted(together)[-_EPOCHS_REPORTED:]},
    )
