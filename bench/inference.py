"""The inference server beside LitServe (`pip install litserve`) and beside onnxruntime in a loop: one model, one run.

The model is a small perceptron, so that what is measured is the serving and not the arithmetic. Both servers have one
worker, one thread and batches of up to 32 rows. CPU is that of all processes of a server; times are of the wall clock
and depend on what else the machine does. Without LitServe its columns are left out.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

from .claim import Claim, busy, cpu_seconds, until
from .gateway import _free_port

COLUMNS, HIDDEN, CLASSES = 64, 256, 10
REQUESTS, CONNECTIONS = 6000, 16
LITSERVE = Path(__file__).parent / "programs" / "litserve_model.py"
ROOT = Path(__file__).parent.parent


def run() -> Iterator[Claim]:
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        model = _model(Path(folder) / "perceptron")
        loop = _bare_loop(model / "model.onnx")
        ours = asyncio.run(_ours(stack, model))
        other = asyncio.run(_litserve(stack, model)) if importlib.util.find_spec("litserve") else None
    asked = f"{REQUESTS} POSTs of {COLUMNS} numbers as JSON, {CONNECTIONS} connections that ask again once answered"
    note = f"{asked}, {busy()}"
    for what, key, unit in (
        ("inference server, CPU per request", "cpu", "µs"),
        ("inference server, p50 in a closed loop", "p50", "ms"),
        ("inference server, p99 in a closed loop", "p99", "ms"),
        ("inference server, requests in a closed loop", "rate", "/s"),
    ):
        beside: dict[str, Any] = {"other": other[key], "other_name": "LitServe"} if other else {}
        yield Claim(what, ours[key], unit, **beside, note=note)
    if other:
        for what, key, goal in (("CPU per request", "cpu", 0.5), ("p99", "p99", 1.0)):
            yield Claim(f"… {what} as a multiple of LitServe's", ours[key] / other[key], "×", goal=goal, note=note)
        ratio = ours["rate"] / other["rate"]
        yield Claim("… requests as a multiple of LitServe's", ratio, "×", goal=1.5, at_least=True, note=note)
    yield Claim(
        "inference server, CPU beside a bare loop",
        ours["cpu"],
        "µs",
        other=loop,
        other_name="onnxruntime in a loop, no HTTP, no JSON",
        note=note,
    )


def _model(folder: Path) -> Path:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> Any:
        return numpy_helper.from_array(random.standard_normal(shape).astype("float32"), name)

    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w1"], ["a"]),
            helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("MatMul", ["b", "w2"], ["c"]),
            helper.make_node("Softmax", ["c"], ["y"]),
        ],
        "perceptron",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", COLUMNS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", CLASSES])],
        [weights("w1", COLUMNS, HIDDEN), weights("w2", HIDDEN, CLASSES)],
    )
    folder.mkdir()
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(made, str(folder / "model.onnx"))
    return folder


def _bare_loop(model: Path) -> float:
    """Microseconds of CPU for its own row."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    feeds = {"x": np.zeros((1, COLUMNS), "float32")}
    session.run(None, feeds)
    before = time.process_time()
    for _ in range(REQUESTS):
        session.run(None, feeds)
    return (time.process_time() - before) / REQUESTS * 1e6


async def _ours(stack: ExitStack, model: Path) -> dict[str, float]:
    port = _free_port()
    command = ["-m", "paddlecloud.serving", "--model", str(model), "--host", "127.0.0.1", "--port", str(port)]
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, COLUMNS], "data": [0.5] * COLUMNS}
    return await _measured(stack, command, port, "/v2/models/perceptron/infer", {"inputs": [tensor]})


async def _litserve(stack: ExitStack, model: Path) -> dict[str, float]:
    port = _free_port()
    command = [str(LITSERVE), str(model / "model.onnx"), str(port)]
    return await _measured(stack, command, port, "/predict", {"data": [0.5] * COLUMNS})


async def _measured(
    stack: ExitStack, command: Sequence[str], port: int, path: str, body: dict[str, Any]
) -> dict[str, float]:
    process = Popen([sys.executable, *command], cwd=ROOT, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True)
    stack.callback(_end, process)
    request = _request(path, body)
    await asyncio.to_thread(until, lambda: _answers(port, request), timeout=60, every=0.2)
    await _load(port, request, REQUESTS // 6)
    before = _cpu(process.pid)
    began = time.monotonic()
    times = sorted(await _load(port, request, REQUESTS))
    took = time.monotonic() - began
    return {
        "cpu": (_cpu(process.pid) - before) / len(times) * 1e6,
        "rate": len(times) / took,
        "p50": times[len(times) // 2] * 1e3,
        "p99": times[len(times) * 99 // 100] * 1e3,
    }


def _end(process: Popen[bytes]) -> None:
    """With all it started: workers of LitServe leave its process group, outlive it, and keep a processor busy."""
    for pid in (*_below(process.pid), process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(timeout=10)


def _request(path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def _answers(port: int, request: bytes) -> bool:
    try:
        asyncio.run(_load(port, request, CONNECTIONS))
    except (OSError, AssertionError, asyncio.IncompleteReadError):
        return False
    return True


async def _load(port: int, request: bytes, count: int) -> list[float]:
    """Seconds of each request; one after the other on every connection."""
    times: list[float] = []

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(count // CONNECTIONS):
            began = time.monotonic()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0])
            await reader.readexactly(length)
            times.append(time.monotonic() - began)
        writer.close()

    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
    return times


def _cpu(pid: int) -> float:
    """Seconds of CPU of a process and all below it."""
    return sum(cpu_seconds(each) for each in (pid, *_below(pid)))


def _below(pid: int) -> list[int]:
    children = [
        int(child)
        for task in os.listdir(f"/proc/{pid}/task")
        for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()
    ]
    return [each for child in children for each in (child, *_below(child))]
