"""Large objects: what takes long with them is done in a thread, so that other requests are served meanwhile.

Reading, patching, shaping and judging cost up to two microseconds for each byte of a request and of the object that it
is about. Beyond `LARGE` bytes those steps, which look at nothing but their arguments, go to one thread: one large
request at a time, however many are sent. What looks at the state of the store stays in the event loop, and
`verbs.Verbs` decides again where that state moved while the thread was at work.

A stored object has the limits that it has on a cluster, so that no write makes more of a request than can be read back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from paddlecloud.local.apiserver.registry import KindInfo

LARGE = 64 * 1024
"""Bytes up to which a request is decided at once, within some 100 ms at worst."""

MAX_CUSTOM = 3 * 512 * 1024
"""Bytes of a stored object of a custom kind: etcd's limit for a request. It keeps these objects as JSON, as we do."""
MAX_BUILTIN = 2 * MAX_CUSTOM
"""Bytes of other objects. Those are protobuf in etcd, about half as long: the reason why kube-apiserver, too, reads
bodies of twice etcd's limit."""

T = TypeVar("T")

_thread = ThreadPoolExecutor(1, thread_name_prefix="large-requests")


class Runner(Protocol):
    """`await run(function, *args)`: at once, without giving way to other tasks, or in the thread."""

    def __call__(self, function: Callable[..., T], /, *args: Any) -> Awaitable[T]: ...


async def at_once(function: Callable[..., T], /, *args: Any) -> T:
    return function(*args)


async def in_thread(function: Callable[..., T], /, *args: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(_thread, function, *args)


def runner(size: int) -> Runner:
    """How to run what costs time in proportion to `size` bytes."""
    return in_thread if size > LARGE else at_once


def largest_stored(info: KindInfo) -> int:
    return MAX_CUSTOM if info.custom else MAX_BUILTIN
