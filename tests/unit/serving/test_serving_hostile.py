"""Requests made to cost more than they should: they are refused or read cheaply, and other clients are answered."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import time
import zlib
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp.test_utils import TestClient
from onnx import TensorProto

from harness import PATIENCE, eventually, longest_turn
from unit.serving import models
from unit.serving.conftest import Serve

SIZE = (1 << 20) - 100
"""Bytes; as Python's notation a little less than is read."""
LONGEST_TURN = 0.25
"""CPU seconds that the event loop's own thread may spend in one turn; a busy machine does not count."""


def keyed(text: str) -> str:
    return json.dumps({"key": ["x"], "value": [text]})


def repeated(unit: str, *, before: str = "", after: str = "") -> str:
    return before + unit * ((SIZE - len(before + after)) // len(unit)) + after


LITERALS = {
    "a list that never ends": repeated("1,", before="["),
    "tuples": repeated("(1,),", before="(", after=")"),
    "lists in lists": "[" * SIZE,
    "negated for ever": "-" * SIZE,
    "sums": repeated("1+", after="1"),
    "texts": repeated("'',", before="[", after="'a']"),
    "escapes": repeated(r"\x41", before="['", after="']"),
    "a text without an end": repeated(r"\\", before="['"),
    "escaped quotes without an end": repeated(r"\'", before="['"),
    "dicts": repeated("{},", before="[", after="()]"),
    "a long number": "1" * SIZE,
}
BODIES = {
    **{f"key and value: {name}": ("/double/prediction", keyed(text)) for name, text in LITERALS.items()},
    "feed: lists in lists": ("/double/prediction", '{"feed": ' + "[" * SIZE),
    "feed: rows": ("/double/prediction", repeated('{"x":[1,2,3]},', before='{"feed":[', after='{"x":[1,2,3]}]}')),
    "feed: objects": ("/double/prediction", repeated("{},", before='{"feed":[', after="{}]}")),
    "tensors": ("/GeneralModelService/inference", repeated('{"name":"x"},', before='{"tensor":[', after="{}]}")),
    "inputs": ("/v2/models/double/infer", repeated('{"name":"x"},', before='{"inputs":[', after="{}]}")),
    "outputs": (
        "/v2/models/double/infer",
        repeated('{"name":"y"},', before='{"inputs":[{"name":"x","data":[1]}],"outputs":[', after='{"name":"q"}]}'),
    ),
    "keys": ("/v2/models/double/infer", "{" + ",".join(f'"{n}":{n}' for n in range(70_000)) + "}"),
}  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
async def test_a_body_made_to_be_slow_holds_up_no_other_client(serve: Serve, tmp_path: Path, body: str) -> None:
    client = await serve(models.linear(tmp_path / "double"), largest=16 << 20)
    path, content = BODIES[body]
    began = time.process_time()
    slow = asyncio.ensure_future(client.post(path, data=io.BytesIO(content.encode())))
    turn = asyncio.ensure_future(longest_turn(slow))
    others = 0
    while not slow.done() and others < 5:
        answer = await client.post("/double/prediction", json={"feed": [{"x": [1, 2, 3]}]})
        assert answer.status == 200
        others += 1
    await slow
    assert await turn < LONGEST_TURN
    assert slow.result().status in (200, 400, 413)
    assert len(await slow.result().read()) < 4 * SIZE
    assert time.process_time() - began < 4, "CPU seconds for 1 MB"


async def test_inputs_that_wait_for_another_server_do_not_hold_up_the_others(serve: Serve, tmp_path: Path) -> None:
    folder = models.linear(tmp_path / "double")
    (folder / "serving.yaml").write_text("processor: process.py:P\n")
    (folder / "process.py").write_text(
        "import threading\n"
        "class P:\n"
        "    over = threading.Event()\n"
        "    def preprocess(self, inputs):\n"
        "        if 'slow' in inputs:\n"
        "            P.over.wait(60)\n"
        "        else:\n"
        "            P.over.set()\n"
        "        return {'x': [1, 2, 3]}\n"
    )
    client = await serve(folder)
    slow = [asyncio.ensure_future(client.post("/double/prediction", json={"feed": [{"slow": 1}]})) for _ in range(20)]
    quick = await asyncio.wait_for(client.post("/double/prediction", json={"feed": [{}]}), 30)
    assert quick.status == 200
    assert {answer.status for answer in await asyncio.gather(*slow)} == {200}


async def test_a_refusal_does_not_repeat_what_was_sent(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.linear(tmp_path / "double"), largest=16 << 20)
    body = json.dumps({"inputs": [{"name": "z" * SIZE}]}).encode()
    answer = await client.post("/v2/models/double/infer", data=io.BytesIO(body))
    assert answer.status == 400
    assert len(await answer.read()) < 2000


async def test_a_body_that_does_not_arrive_is_given_up(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.linear(tmp_path / "double"), seconds=0.1)
    over = asyncio.Event()

    async def slow() -> Any:
        yield b"{"
        await over.wait()

    answer = await client.post("/double/prediction", data=slow())
    assert answer.status == 408
    over.set()


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_body_that_is_not_compressed_as_it_says_is_the_clients_mistake(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture, encoding: str
) -> None:
    client = await serve(models.linear(tmp_path / "double"))
    reader, writer = await asyncio.open_connection(client.host, client.port)
    head = f"POST /double/prediction HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Encoding: {encoding}\r\n"
    writer.write(f"{head}Content-Length: 18\r\n\r\nneither of the two".encode())
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"is not compressed as its Content-Encoding says" in answer
    assert not [record for record in caplog.records if record.exc_info], "no traceback for each such request"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "bare deflate"])
async def test_compressed_bodies_are_understood_and_those_cut_off_are_refused(
    serve: Serve, tmp_path: Path, encoding: str
) -> None:
    client = await serve(models.linear(tmp_path / "double"))
    compressor = zlib.compressobj(wbits={"gzip": 31, "deflate": 15, "bare deflate": -15}[encoding])
    body = compressor.compress(b'{"feed": [{"x": [1, 2, 3]}]}') + compressor.flush()
    headers = {"Content-Encoding": encoding.rpartition(" ")[2]}
    assert (await client.post("/double/prediction", data=body, headers=headers)).status == 200
    assert (await client.post("/double/prediction", data=body[:-9], headers=headers)).status == 400


async def test_another_compression_is_refused_with_those_that_are_known(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.linear(tmp_path / "double"))
    answer = await client.post("/double/prediction", data=b"{}", headers={"Content-Encoding": "br"})
    assert answer.status == 415
    assert "gzip and deflate" in (await answer.json())["error"]


@pytest.mark.parametrize("path", ["/v2/models/double/infer", "/v2/models/other/infer", "/healthz"])
async def test_a_body_that_grows_a_thousandfold_holds_up_no_other_client_on_any_path(
    serve: Serve, tmp_path: Path, path: str
) -> None:
    client = await serve(models.linear(tmp_path / "double"), largest=16 << 20)
    compressor = zlib.compressobj(wbits=-15)
    piece = compressor.compress(bytes(1 << 24)) + compressor.flush(zlib.Z_FULL_FLUSH)
    body = piece * 128 + compressor.flush()
    asked = asyncio.ensure_future(client.post(path, data=io.BytesIO(body), headers={"Content-Encoding": "deflate"}))
    turn = asyncio.ensure_future(longest_turn(asked))
    assert (await asked).status in (404, 405, 413)
    answer = await client.post("/double/prediction", json={"feed": [{"x": [1, 2, 3]}]})
    assert answer.status == 200
    assert await turn < LONGEST_TURN


def asks_for_much(rows: int) -> bytes:
    body = json.dumps({"inputs": [{"name": "x", "shape": [rows, 1], "datatype": "FP32", "data": [1] * rows}],
                       "parameters": {"binary_data_output": True}})  # fmt: skip
    return f"POST /v2/models/wide/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


async def dial(client: TestClient[Any, Any]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """With little room on the way, so that what is not read stays with the server."""
    way = socket.socket()
    way.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    way.setblocking(False)
    await asyncio.get_running_loop().sock_connect(way, (client.host, client.port))
    return await asyncio.open_connection(sock=way, limit=1 << 12)


async def received(reader: asyncio.StreamReader) -> int:
    size = 0
    with contextlib.suppress(ConnectionError):
        while piece := await asyncio.wait_for(reader.read(1 << 16), PATIENCE):
            size += len(piece)
    return size


async def test_an_answer_that_nobody_reads_is_given_up(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.wide(tmp_path / "wide"), largest=16 << 20, seconds=3)
    reader, writer = await dial(client)
    writer.write(asks_for_much(1024))
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
    assert b" 200 " in head
    await eventually(lambda: not client.server.runner.server.connections, what="the connection is given up")
    assert await received(reader) < 16 << 20
    writer.close()


async def test_answers_that_nobody_reads_make_room_for_others(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.wide(tmp_path / "wide"), largest=16 << 20)
    clients = [await dial(client) for _ in range(3)]
    for reader, writer in clients:
        writer.write(asks_for_much(1024))
        assert b" 200 " in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
    sizes = [asyncio.ensure_future(received(reader)) for reader, _ in clients]
    await asyncio.wait(sizes[:1])
    assert sizes[0].result() < 16 << 20
    for _, writer in clients:
        writer.close()


async def test_all_bodies_under_way_together_are_limited(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.linear(tmp_path / "double"), largest=1 << 20)
    over = asyncio.Event()

    async def held() -> Any:
        yield b" " * ((1 << 20) - 10)
        await over.wait()
        yield b"{}"

    holding = [asyncio.ensure_future(client.post("/double/prediction", data=held())) for _ in range(3)]
    done, waiting = await asyncio.wait(holding, return_when=asyncio.FIRST_COMPLETED)
    refused = done.pop().result()
    assert (refused.status, len(waiting)) == (429, 2)
    assert int(refused.headers["Retry-After"]) >= 1
    small = await client.post("/double/prediction", json={"feed": [{"x": [1, 2, 3]}]})
    assert small.status == 200, "what is small is answered beside them"
    over.set()
    assert {answer.status for answer in await asyncio.gather(*waiting)} == {413}, "too much JSON"
    again = await client.post("/double/prediction", data=io.BytesIO(b" " * ((1 << 20) - 10)))
    assert again.status == 413, "their place is free again"


KINDS = {
    "BOOL": TensorProto.BOOL,
    "UINT8": TensorProto.UINT8,
    "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64,
    "UINT64": TensorProto.UINT64,
    "FP32": TensorProto.FLOAT,
    "FP64": TensorProto.DOUBLE,
    "BYTES": TensorProto.STRING,
}
NUMBERS = (0, 1, 1.5, -1, 255, 256, 2**31, 2**63, 2**64, -(2**63) - 1, 1e30, 1e39, 10**400, 5e-324)
VALUES = (*NUMBERS, float("nan"), float("-inf"), True, None, "", "1", "\ud800", {}, {"a": [1]}, [], [1], [[1, 2]])
WORDS = ("x", "data", "FP32", "INT64", "BYTES", "BOOL", "²", ["FP32"], {}, 3, None)


def mistaken(random: Random, datatype: str) -> tuple[str, bytes, dict[str, str]]:
    """A request with wrong values or of a wrong form, by each protocol that has JSON."""
    value = lambda: random.choice(VALUES)  # noqa: E731
    data = random.choice([[[value(), value()]], [value(), value()], [[value()], [value(), value()]], value()])
    entry: dict[str, Any] = {"name": datatype, "shape": [1, 2], "datatype": datatype, "data": data}
    if random.random() < 0.3:
        entry[random.choice(("name", "shape", "datatype", "data", "parameters"))] = random.choice((*WORDS, value()))
    tensor = {"name": datatype, "elem_type": random.choice((0, 1, 2, 20, None, "1")), "shape": [1, 2]}
    tensor |= dict.fromkeys(("int64_data", "float_data", "int_data", "string_data"), data)
    bodies: dict[str, dict[str, Any]] = {
        "/v2/models/echo/infer": {"id": random.choice(VALUES), "inputs": [entry]},
        "/echo/prediction": {"feed": [{datatype: data}, *([{datatype: value()}] if random.random() < 0.3 else [])]},
        "/GeneralModelService/inference": {"tensor": [tensor], "log_id": value()},
    }
    path = random.choice([*bodies, "keyed"])
    keyed = {"key": [datatype], "value": [random.choice((json.dumps(data), repr(data), data))]}
    body = json.dumps(bodies.get(path, keyed)).encode()
    length = {"Inference-Header-Content-Length": random.choice(("²", "9" * 5000, "-1", "3"))}
    return "/echo/prediction" if path == "keyed" else path, body, length if random.random() < 0.05 else {}


@pytest.mark.parametrize("datatype", KINDS)
async def test_a_clients_mistake_is_never_an_error_of_the_server(serve: Serve, tmp_path: Path, datatype: str) -> None:
    """It would count among the errors that a roll-out goes back for."""
    client = await serve(models.echo(tmp_path / "echo", types={datatype: KINDS[datatype]}))
    random, seen = Random(datatype), set()
    for _ in range(400):
        path, body, headers = mistaken(random, datatype)
        answer = await client.post(path, data=body, headers=headers)
        text = await answer.text()
        assert answer.status in (200, 400), (path, body, headers, text)
        seen.add(answer.status)
    assert 400 in seen
