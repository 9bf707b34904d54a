"""What a viewer may see and do, as the API server answers to the viewer's own credentials.

Answers are kept for seconds: a right that was taken away ends that much later. What may not be listed is not shown, nor
is said that it exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from paddlecloud.kube import access
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.resource import Resource

SECONDS = 10.0
AT_ONCE = 16
"""Questions to the API server at the same time, of one viewer with rights in single namespaces."""
MOST_ANSWERS = 10_000


class Question(NamedTuple):
    verb: str
    resource: Resource
    namespace: str = access.EVERYWHERE
    name: str = ""


class Rights:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._answers: dict[Question, tuple[float, asyncio.Task[bool]]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def may(self, verb: str, resource: Resource, namespace: str = "", name: str = "") -> bool:
        """A question that was asked a moment ago is not asked again; raises `ApiError` for a token that has expired."""
        question = Question(verb, resource, namespace, name)
        kept = self._answers.get(question)
        if kept is None or kept[0] <= self._clock.monotonic() or _has_failed(kept[1]):
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            kept = self._clock.monotonic() + SECONDS, asyncio.ensure_future(self._ask(question))
            self._answers[question] = kept
        return await asyncio.shield(kept[1])

    async def sees(self, resource: Resource, namespace: str) -> bool:
        """Whether all objects of a kind in a namespace may be shown."""
        if await self.may("list", resource):
            return True
        return bool(namespace) and await self.may("list", resource, namespace)

    async def among(self, resource: Resource, namespaces: Iterable[str]) -> frozenset[str] | None:
        """Those of the namespaces in which a kind may be listed; None for all of them."""
        if await self.may("list", resource):
            return None
        asked = [namespace for namespace in namespaces if namespace]
        answers = await asyncio.gather(*(self.may("list", resource, namespace) for namespace in asked))
        return frozenset(namespace for namespace, allowed in zip(asked, answers, strict=True) if allowed)

    async def _ask(self, question: Question) -> bool:
        async with self._slots:
            return await access.may(self._client, *question)


def _has_failed(task: asyncio.Task[bool]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
