"""Virtual nodes get their kubelet, also when the first attempt fails."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any, cast

from harness import eventually
from paddlecloud.kube import errors
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.node.node import NodeConfig
from paddlecloud.local.nodes.keeper import NodeKeeper
from paddlecloud.local.nodes.marks import NODE_KIND, VIRTUAL


class _Watches:
    """The Node objects there are, and who is notified of them."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.nodes = SimpleNamespace(on_change=self._subscribe, cache=SimpleNamespace(list=self._list))
        self.pods = SimpleNamespace(cache=SimpleNamespace(by_index=lambda index, key: []))

    def _subscribe(self, notify: Any) -> None:
        self._notify = notify

    def _list(self) -> list[Object]:
        return list(self.objects.values())

    async def synced(self) -> None:
        pass

    def create(self, name: str) -> None:
        node: Object = {"metadata": {"name": name, "labels": {NODE_KIND: VIRTUAL}}, "status": {"capacity": {}}}
        self.objects[name] = node
        self._notify(None, node)

    def delete(self, name: str) -> None:
        self._notify(self.objects.pop(name), None)


class _Kubelet:
    """Its first calls fail, as they do while the API server is away."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.nodes: list[str] = []

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise errors.ServiceUnavailable("the API server is away")

    async def add_node(self, config: NodeConfig) -> None:
        self._fail()
        self.nodes.append(config.name)

    async def remove_node(self, name: str) -> None:
        self._fail()
        self.nodes.remove(name)


async def test_a_node_gets_and_loses_its_kubelet_though_the_first_attempts_fail() -> None:
    watches, kubelet = _Watches(), _Kubelet(failures=2)
    keeper = NodeKeeper(cast(Any, None), cast(Any, watches), cast(Any, kubelet), own=[], clock=FakeClock())
    running = asyncio.create_task(keeper.run())
    try:
        watches.create("second")
        await eventually(lambda: kubelet.nodes == ["second"])
        kubelet.failures = 2
        watches.delete("second")
        await eventually(lambda: kubelet.nodes == [])
        watches.create("second")
        await eventually(lambda: kubelet.nodes == ["second"])
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
