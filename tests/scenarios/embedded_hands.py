"""The hands on the embedded platform: its control plane is one process, and its nodes are pdc's."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import Target, pdc, until
from paddlecloud.platform import endpoint


class EmbeddedHands:
    def __init__(self, server: Target) -> None:
        self._env, self._data = server.env, server.kubeconfig.parent
        self._added: list[str] = []

    def stop_controller(self) -> None:
        found = endpoint.find(self._data)
        assert found is not None
        os.kill(found.pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{found.pid}").exists())

    def start_controller(self) -> None:
        pdc("up", "--data", str(self._data), "--kubeconfig", str(self._data / "session.kubeconfig"))

    def have_nodes(self, number: int) -> None:
        there = json.loads(pdc("get", "nodes", "-o", "json", env=self._env).stdout)["items"]
        for index in range(len(there), number):
            self._added.append(f"more-{index}")
            pdc("node", "add", self._added[-1], env=self._env)

    def remove_nodes(self) -> None:
        if self._added:
            pdc("node", "rm", *self._added, "-y", env=self._env)
        self._added.clear()

    def lose_node(self, name: str) -> None:
        pdc("node", "fail", name, "-y", env=self._env)

    def restore_node(self, name: str) -> None:
        pdc("node", "restore", name, env=self._env)

    @contextmanager
    def declared(self, capacity: dict[str, str], labels: dict[str, str]) -> Iterator[str]:
        has = {"cpu": "8", "memory": "16Gi", **capacity}
        pdc("node", "add", "declares", "--capacity", _pairs(has), "--labels", _pairs(labels), env=self._env)
        try:
            yield "declares"
        finally:
            pdc("node", "rm", "declares", "-y", env=self._env)


def _pairs(given: dict[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in given.items())
