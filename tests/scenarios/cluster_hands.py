"""The hands on a cluster: controllers are pods of a Deployment; nodes are lost where they are the fixture's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from cluster.harness.target import fixture, restore
from cluster.operators import NAMESPACE, PADDLEJOB, pods_of
from harness import Target, need, until


class ClusterHands:
    def __init__(self, server: Target, kubectl: str) -> None:
        self._base = [kubectl, "--kubeconfig", str(server.kubeconfig), "--namespace", NAMESPACE]

    def stop_controller(self) -> None:
        """Killed, not asked: nothing is finished and no lease is given back."""
        self._run("scale", f"deployment/{PADDLEJOB}", "--replicas=0")
        self._run("delete", "pods", "-l", pods_of("paddlejob"), "--grace-period=0", "--force")
        until(lambda: self._run("get", "pods", "-l", pods_of("paddlejob"), "-o", "name") == "", timeout=60)

    def start_controller(self) -> None:
        self._run("scale", f"deployment/{PADDLEJOB}", "--replicas=2")
        self._run("rollout", "status", f"deployment/{PADDLEJOB}", "--timeout=120s")

    def have_nodes(self, number: int) -> None:
        ready = self._run("get", "nodes", "--no-headers").count(" Ready ")
        need("nodes", have=ready >= number, hint=f"{number} nodes; this cluster has {ready}: `make cluster NODES=3`")

    def lose_node(self, name: str) -> None:
        fixture().node_off(int(name.removeprefix("node")))

    def restore_node(self, name: str) -> None:
        restore(int(name.removeprefix("node")))

    @contextmanager
    def declared(self, capacity: dict[str, str], labels: dict[str, str]) -> Iterator[str]:
        """The kubelet takes what its status says for granted, of kinds of things that it does not know itself."""
        name = self._run("get", "nodes", "-o", "name").split()[-1].partition("/")[2]
        self._declare(name, dict(capacity), dict(labels))
        try:
            yield name
        finally:
            self._declare(name, dict.fromkeys(capacity), dict.fromkeys(labels))

    def _declare(self, node: str, capacity: dict[str, str | None], labels: dict[str, str | None]) -> None:
        has = {"status": {"capacity": capacity, "allocatable": capacity}}
        self._run("patch", "node", node, "--subresource=status", "--type=merge", "-p", json.dumps(has))
        self._run("patch", "node", node, "--type=merge", "-p", json.dumps({"metadata": {"labels": labels}}))

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([*self._base, *arguments], capture_output=True, text=True, timeout=150)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout
