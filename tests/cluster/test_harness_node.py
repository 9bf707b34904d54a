"""A node that is switched on starts its kubelet once its container runtime answers; else the run ends and says why."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from .harness import node, target
from .harness.errors import HarnessError
from .harness.layout import Layout

TOO_EARLY = "server is not initialized yet"


class Runtime(grpc.GenericRpcHandler):
    """containerd as far as the kubelet asks it first: it refuses a number of times, then says its version."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.asked: list[str] = []

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        self.asked.append(details.method)

        def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
            if len(self.asked) <= self.refusals:
                context.abort(grpc.StatusCode.UNKNOWN, TOO_EARLY)
            return b""

        return grpc.unary_unary_rpc_method_handler(answer)


@pytest.fixture
def socket() -> Iterator[Path]:
    """A path that is short enough for a socket."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder) / "s"


@pytest.fixture
def serve(socket: Path) -> Iterator[Callable[[int], Runtime]]:
    server = grpc.server(ThreadPoolExecutor(1))

    def served(refusals: int) -> Runtime:
        runtime = Runtime(refusals)
        server.add_generic_rpc_handlers((runtime,))
        server.add_insecure_port(f"unix:{socket}")
        server.start()
        return runtime

    yield served
    server.stop(None).wait()


@pytest.fixture
def machine(socket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """This very process, whose root is the machine's."""
    monkeypatch.setattr(node, "_SOCKET", str(socket))
    layout = Layout(tmp_path)
    log = layout.log("node1", "containerd")
    log.parent.mkdir(parents=True)
    log.write_text("failed to load plugin\n")
    return SimpleNamespace(name="node1", holder=os.getpid(), layout=layout)


def test_what_keeps_the_runtime_from_answering_is_named(socket: Path, serve: Callable[[int], Runtime]) -> None:
    assert node.cri_obstacle(socket) == "its socket is not there"
    runtime = serve(1)
    assert node.cri_obstacle(socket) == TOO_EARLY
    assert node.cri_obstacle(socket) is None
    assert runtime.asked == ["/runtime.v1.RuntimeService/Version"] * 2


def test_a_kubelet_waits_until_the_runtime_answers(machine: Any, serve: Callable[[int], Runtime]) -> None:
    runtime = serve(2)
    node._await_runtime(machine)
    assert len(runtime.asked) == 3


def test_a_runtime_that_never_answers_is_an_error_with_the_end_of_its_log(
    machine: Any, serve: Callable[[int], Runtime]
) -> None:
    serve(1_000)
    with pytest.raises(HarnessError, match=f"node1 does not answer after 0 s: {TOO_EARLY}") as raised:
        node._await_runtime(machine, patience=0)
    assert raised.value.reason == "ServiceDown"
    assert "failed to load plugin" in str(raised.value)


class SwitchedOn:
    """A cluster of which a node is switched on again."""

    def __init__(self, *, whole: bool) -> None:
        self.whole = whole
        self.done: list[str] = []

    def node_on(self, number: int) -> None:
        self.done.append(f"node{number} on")

    def await_whole(self) -> None:
        self.done.append("awaited")
        if not self.whole:
            raise HarnessError("node2 is NotReady", reason="NotReady")


def test_a_cluster_that_does_not_become_whole_ends_the_run_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "fixture", lambda: SwitchedOn(whole=False))
    with pytest.raises(pytest.exit.Exception) as stopped:
        target.restore(2)
    assert stopped.value.returncode == 3
    assert stopped.value.msg == ("node2 was switched off by a test and the cluster did not recover: node2 is NotReady")


def test_a_cluster_that_is_whole_again_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = SwitchedOn(whole=True)
    monkeypatch.setattr(target, "fixture", lambda: cluster)
    target.restore(2)
    assert cluster.done == ["node2 on", "awaited"]
