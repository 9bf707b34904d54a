"""An object as YAML for a page. To write a megabyte takes seconds, during which nobody else would be answered: a large
object is written as JSON, which is YAML, too."""

from __future__ import annotations

import asyncio

import msgspec

from paddlecloud.kube.resource import Object
from paddlecloud.kube.yamlio import dump

LARGE = 64 * 1024
"""As JSON without spaces."""


async def yaml_text(obj: Object) -> str:
    compact = msgspec.json.encode(obj)
    if len(compact) > LARGE:
        return msgspec.json.format(compact, indent=2).decode()
    return await asyncio.to_thread(dump, obj)
