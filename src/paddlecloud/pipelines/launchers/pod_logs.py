"""The logs of an object's pods, line by line, from their start to their end.

Pods are watched by a label, so that one that is replaced is read too. A stream that breaks is resumed after its last
line. Reading logs is help for people: a step neither fails nor waits because a log cannot be read. That the account may
not read them is reported once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from paddlecloud.kube import watching
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError, Forbidden, NotFound
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.kube.transport import split_lines

WATCH_SECONDS = 240
PAUSE = 1.0
DRAIN_SECONDS = 10.0
"""How long after the end of an object its pods' last lines are waited for."""
LONGEST_LINE = 4096


class PodLogs:
    def __init__(self, client: Client, namespace: str, selector: str, report: Callable[[str], None]) -> None:
        self._client = client
        self._namespace = namespace
        self._selector = selector
        self._report = report
        self._refused = False
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._watch = asyncio.create_task(self._follow_pods())

    async def close(self, *, drain: bool) -> None:
        """Stop reading; with `drain` only after the lines of containers that have ended."""
        if drain:
            await self._look()
            if self._readers:
                await asyncio.wait(self._readers.values(), timeout=DRAIN_SECONDS)
        tasks = [self._watch, *self._readers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow_pods(self) -> None:
        while True:
            try:
                version = await self._look()
                changes = watching.changes(
                    self._client,
                    PODS,
                    self._namespace,
                    label_selector=self._selector,
                    resource_version=version,
                    seconds=WATCH_SECONDS,
                )
                async with aclosing(changes) as events:
                    async for event in events:
                        self._consider(event.object)
            except ApiError as error:
                self._note(error)  # out of reach, too old or not allowed: looked at again in a moment
            await asyncio.sleep(PAUSE)

    async def _look(self) -> str:
        try:
            found = await self._client.list(PODS, self._namespace, label_selector=self._selector)
        except ApiError as error:
            self._note(error)
            return ""  # as above; without a version the watch begins with what there is
        for pod in found.items:
            self._consider(pod)
        return found.resource_version

    def _note(self, error: ApiError) -> None:
        if isinstance(error, Forbidden) and not self._refused:
            self._refused = True
            self._report(f"warning: logs of pods are not copied: {error.message}")

    def _consider(self, pod: Object) -> None:
        uid = str(pod["metadata"].get("uid"))
        if uid not in self._readers and _has_started(pod):
            self._readers[uid] = asyncio.create_task(self._read(pod))

    async def _read(self, pod: Object) -> None:
        name, last = str(pod["metadata"]["name"]), ""
        path = PODS.path(self._namespace, name, "log")
        query = {"follow": "true", "timestamps": "true", "container": str(pod["spec"]["containers"][0]["name"])}
        while True:
            border = last
            if border:
                query["sinceTime"] = border[:19] + "Z"  # the server filters by whole seconds, the rest is filtered here
            lines = split_lines(self._client.stream(path, query=query, accept="*/*"))
            try:
                async for raw in lines:
                    time, _, text = raw.decode(errors="replace").partition(" ")
                    if time > border:  # lines that were written at once have one time
                        last = time
                        self._report(f"[{name}] {text[:LONGEST_LINE]}")
                return
            except NotFound:
                return
            except Forbidden as error:
                self._note(error)
                return
            except ApiError:
                await asyncio.sleep(PAUSE)
            finally:
                await lines.aclose()


def _has_started(pod: Object) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    wanted = pod["spec"]["containers"][0]["name"]
    states = [one.get("state") or {} for one in statuses if one.get("name") == wanted]
    return any("running" in state or "terminated" in state for state in states)
