"""The same model over gRPC, called as a generated client would call it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from harness import PATIENCE
from paddlecloud.serving import grpc_service
from paddlecloud.serving.errors import BadInput
from paddlecloud.serving.grpc_messages import message
from paddlecloud.serving.intake import SMALL, Intake
from paddlecloud.serving.limits import MOST_PARTS
from paddlecloud.serving.metrics import Metrics
from paddlecloud.serving.model import Resources
from paddlecloud.serving.slot import Slot
from unit.serving import models
from unit.serving.conftest import Serve


class Client:
    def __init__(self, channel: Any, intake: Intake, place: str) -> None:
        self._channel = channel
        self.place = place
        self.intake = intake

    async def __call__(self, method: str, **fields: Any) -> Any:
        call = self._channel.unary_unary(
            f"/inference.GRPCInferenceService/{method}",
            request_serializer=message(f"{method}Request").SerializeToString,
            response_deserializer=message(f"{method}Response").FromString,
        )
        return await call(message(f"{method}Request")(**fields), timeout=10)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    slot = Slot(models.linear(tmp_path / "double"), name="", resources=Resources(), metrics=Metrics())
    await slot.load()
    intake = Intake(1 << 20)
    server = grpc_service.build(slot, intake)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Client(channel, intake, f"127.0.0.1:{port}")
    await server.stop(None)
    await slot.close()


def test_a_message_of_very_many_fields_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(BadInput, match=f"more than {MOST_PARTS} fields"):
        grpc_service.parse(message("ModelInferRequest"), b"\x2a\x00" * (MOST_PARTS + 1))
    with pytest.raises(BadInput, match="cut off"):
        grpc_service.parse(message("ModelInferRequest"), b"\xff" * 20)


async def test_it_describes_itself(client: Client) -> None:
    assert (await client("ServerLive")).live
    assert (await client("ServerReady")).ready
    assert (await client("ModelReady", name="double")).ready
    reported = await client("ModelMetadata", name="double")
    assert (reported.platform, list(reported.versions)) == ("onnx", ["1"])
    assert [(tensor.name, tensor.datatype, list(tensor.shape)) for tensor in reported.inputs] == [
        ("x", "FP32", [-1, 3])
    ]


@pytest.mark.parametrize("raw", [False, True])
async def test_it_answers(client: Client, raw: bool) -> None:
    tensor: dict[str, Any] = {"name": "x", "datatype": "FP32", "shape": [1, 3]}
    values = np.array([1, 2, 3], dtype="<f4")
    if raw:
        sent = {"inputs": [tensor], "raw_input_contents": [values.tobytes()]}
    else:
        sent = {"inputs": [{**tensor, "contents": {"fp32_contents": values.tolist()}}]}
    answer = await client("ModelInfer", model_name="double", id="seven", **sent)
    assert (answer.model_name, answer.id, answer.outputs[0].name) == ("double", "seven", "y")
    assert np.frombuffer(answer.raw_output_contents[0], "<f4").tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"model_name": "other"}, "NOT_FOUND", "no model 'other'"),
        ({"model_name": "double"}, "INVALID_ARGUMENT", "input 'x' is missing"),
        ({"inputs": [{"name": "q", "datatype": "FP32"}]}, "INVALID_ARGUMENT", "unknown input 'q'"),
        ({"inputs": [{"name": "x", "datatype": "FP32", "shape": [9]}]}, "INVALID_ARGUMENT", "0 values do not fill"),
        ({"inputs": [{"name": "x", "datatype": "FP16", "shape": [3]}]}, "INVALID_ARGUMENT", "needs raw_input_contents"),
        ({"raw_input_contents": [b"1234"]}, "INVALID_ARGUMENT", "0 inputs, but 1 raw contents"),
        (
            {"inputs": [{"name": "x", "datatype": "INT8", "shape": [1, 3], "contents": {"int_contents": [300, 0, 0]}}]},
            "INVALID_ARGUMENT",
            "(sent as INT8): 300 does not fit",
        ),
        (
            {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, -1], "contents": {"fp32_contents": [1]}}]},
            "INVALID_ARGUMENT",
            "shape must be a list of sizes",
        ),
    ],
)
async def test_refusals_have_a_code_and_a_reason(client: Client, fields: Any, code: str, words: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client("ModelInfer", **{"model_name": "double", **fields})
    assert refused.value.code().name == code
    assert words in refused.value.details()


async def test_all_messages_under_way_together_are_limited(client: Client) -> None:
    over = threading.Event()
    holding = asyncio.ensure_future(client.intake.decode(SMALL + 1, over.wait))  # large ones wait for their turn
    values = np.ones((80_000, 3), dtype="<f4")
    tensor = {"name": "x", "datatype": "FP32", "shape": list(values.shape)}
    sent = {"model_name": "double", "inputs": [tensor], "raw_input_contents": [values.tobytes()]}
    calls = [asyncio.ensure_future(client("ModelInfer", **sent)) for _ in range(3)]
    try:
        done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED, timeout=5)
        assert (len(done), len(waiting)) == (1, 2)
        refused = done.pop().exception()
        assert isinstance(refused, grpc.aio.AioRpcError)
        assert (refused.code().name, refused.details()) == (
            "RESOURCE_EXHAUSTED",
            "bodies of 2097152 bytes are under way already",
        )
        assert (await client("ServerLive")).live, "what is small is answered beside them"
    finally:
        over.set()
        await holding
    assert [answer.outputs[0].shape for answer in await asyncio.gather(*waiting)] == [[80_000, 3]] * 2
    assert (await client("ModelInfer", **sent)).outputs, "their place is free again"


# Triton's own client

TRITON = """
import json, sys
import numpy
import tritonclient.{protocol} as triton
from google.protobuf.json_format import MessageToDict

def plain(answer):
    return answer if isinstance(answer, dict) else MessageToDict(answer, preserving_proto_field_name=True)

client = triton.InferenceServerClient(sys.argv[1])
for rows in ([[1, 2, 3]], [[1, 2, 3], [4, 5, 6]], [[7, 8, 9]]):
    given = triton.InferInput("x", [len(rows), 3], "FP32")
    given.set_data_from_numpy(numpy.array(rows, "float32"))
    client.infer("double", [given])
config, stats = plain(client.get_model_config("double")), plain(client.get_inference_statistics("double"))
everything = plain(client.get_inference_statistics())
metadata = plain(client.get_server_metadata())
print(json.dumps([config.get("config", config), stats, everything, metadata["extensions"]]))
"""


@pytest.mark.parametrize("protocol", ["http", "grpc"])
async def test_tritons_own_client_reads_configuration_and_statistics(
    client: Client, serve: Serve, tmp_path: Path, protocol: str
) -> None:
    place = client.place
    if protocol == "http":
        http = await serve(tmp_path / "double")
        place = f"{http.host}:{http.port}"
    program = [sys.executable, "-c", TRITON.format(protocol=protocol), place]
    done = await asyncio.create_subprocess_exec(*program, stdout=subprocess.PIPE)
    said, _ = await asyncio.wait_for(done.communicate(), PATIENCE)
    config, stats, everything, extensions = json.loads(said)
    assert (config["name"], config["backend"], config["max_batch_size"]) == ("double", "onnxruntime", 32)
    (tensor,) = config["input"]
    assert (tensor["name"], tensor["data_type"], list(map(int, tensor["dims"]))) == ("x", "TYPE_FP32", [3])
    (group,) = config["instance_group"]
    assert group["kind"] == "KIND_CPU"
    (shown,) = stats["model_stats"]
    assert everything == stats
    assert [int(shown[name]) for name in ("inference_count", "execution_count")] == [4, 3], "rows, and runs"
    took = {name: int(found.get("count", 0)) for name, found in shown["inference_stats"].items()}
    assert {took[name] for name in ("success", "queue", "compute_input", "compute_infer", "compute_output")} == {3}
    assert took["fail"] == 0
    sizes = {int(one["batch_size"]): int(one["compute_infer"]["count"]) for one in shown["batch_stats"]}
    assert sizes == {1: 2, 2: 1}
    times = {name: int(found.get("ns", 0)) for name, found in shown["inference_stats"].items()}
    assert 0 < times["compute_infer"] <= times["success"]
    assert {"model_configuration", "statistics"} <= set(extensions)
