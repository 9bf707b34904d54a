"""The server as its clients see it: the Open Inference Protocol, Paddle Serving's shapes, refusals."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness import eventually
from paddlecloud.serving.errors import ModelError
from paddlecloud.serving.metrics import Metrics
from paddlecloud.serving.model import Resources
from paddlecloud.serving.slot import Slot
from unit.serving import models
from unit.serving.conftest import Serve

ROW = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}


def inputs(*tensors: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"inputs": list(tensors), **more}


async def test_a_model_describes_itself_and_answers(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.linear(tmp_path / "double"))
    assert await (await client.get("/v2/models/double")).json() == {
        "name": "double",
        "versions": ["1"],
        "platform": "onnx",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}],
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}],
    }
    answer = await client.post("/v2/models/double/infer", json=inputs(ROW, id="seven"))
    assert answer.status == 200
    assert await answer.json() == {
        "model_name": "double",
        "model_version": "1",
        "id": "seven",
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 3], "data": [2.0, 4.0, 6.0]}],
    }
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/double/ready", "/v2/models/double/versions/1"):
        assert (await client.get(path)).status == 200, path


async def test_the_example_of_a_model_is_a_request_it_takes(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.linear(tmp_path / "double"))
    example = await (await client.get("/v2/models/double/example")).json()
    assert example == {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [0, 0, 0]}]}
    assert (await client.post("/v2/models/double/infer", json=example)).status == 200


async def test_tensors_as_bytes_in_both_directions(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.linear(tmp_path / "double"))
    raw = np.array([[1, 2, 3], [4, 5, 6]], dtype="<f4").tobytes()
    tensor = {"name": "x", "shape": [2, 3], "datatype": "FP32", "parameters": {"binary_data_size": len(raw)}}
    header = json.dumps(inputs(tensor, outputs=[{"name": "y", "parameters": {"binary_data": True}}])).encode()
    answer = await client.post(
        "/v2/models/double/infer", data=header + raw, headers={"Inference-Header-Content-Length": str(len(header))}
    )
    body, split = await answer.read(), int(answer.headers["Inference-Header-Content-Length"])
    assert json.loads(body[:split])["outputs"][0]["parameters"] == {"binary_data_size": 24}
    assert np.frombuffer(body[split:], "<f4").tolist() == [2, 4, 6, 8, 10, 12]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/v2/models/double/infer", "{", 400, "not JSON"),
        ("/v2/models/double/infer", "[]", 400, "must be a JSON object"),
        ("/v2/models/double/infer", {}, 400, 'needs "inputs"'),
        ("/v2/models/double/infer", {"inputs": [3]}, 400, "needs a name"),
        ("/v2/models/double/infer", inputs({"name": "z", "data": [1]}), 400, "unknown input 'z'; the model takes x"),
        ("/v2/models/double/infer", inputs(ROW, ROW), 400, "given twice"),
        ("/v2/models/double/infer", inputs({"name": "x"}), 400, "has no data"),
        ("/v2/models/double/infer", inputs({**ROW, "shape": [3, 3]}), 400, "3 values do not fill"),
        ("/v2/models/double/infer", inputs(ROW, outputs=[{"name": "q"}]), 400, "unknown output 'q'; the model gives y"),
        ("/v2/models/double/infer", inputs(ROW, outputs="y"), 400, '"outputs" must be a list'),
        ("/v2/models/other/infer", inputs(ROW), 404, "no model 'other' here; this server has 'double'"),
        ("/v2/models/double/versions/2/infer", inputs(ROW), 404, "has version 1, not 2"),
        ("/other/prediction", {"feed": [{}]}, 404, "no model 'other'"),
        ("/double/prediction", {"feed": 3}, 400, 'needs "feed"'),
        ("/double/prediction", {"feed": [{}]}, 400, "feed lacks 'x'"),
        ("/double/prediction", {"feed": [{"x": "abc"}]}, 400, "input 'x': 'abc' is a text, not a number"),
        ("/double/prediction", {"feed": [{"x": [1]}, {"x": [1, 2]}]}, 400, "its rows differ in length"),
        ("/double/prediction", {"key": ["x"], "value": []}, 400, "the same length"),
        ("/GeneralModelService/inference", {"tensor": [{"name": "x", "elem_type": 9}]}, 400, "unknown elem_type 9"),
        ("/GeneralModelService/inference", {"tensor": [{"name": "x", "elem_type": 1}]}, 400, "needs float_data"),
        (
            "/nowhere",
            {},
            404,
            "nothing at /nowhere; the model is at /v2/models/double/infer, an example of a request at",
        ),
        ("/v2/models/double", {}, 405, "/v2/models/double takes GET, not POST"),
        ("/v2/models/double/infer", "x" * (1 << 20), 413, "larger than 524288 bytes; the server's --largest-body"),
        ("/v2/models/double/infer", "x" * (1 << 18), 413, "JSON has 262144 bytes, allowed are 131072"),
        ("/double/prediction", "x" * (1 << 18), 413, "send tensors in binary form"),
        ("/GeneralModelService/inference", "x" * (1 << 18), 413, "send tensors in binary form"),
        ("/v2/models/double/infer", inputs({**ROW, "shape": [10**30]}), 400, "3 values do not fill"),
        ("/GeneralModelService/inference", {"tensor": [{"name": "x", "elem_type": []}]}, 400, "unknown elem_type []"),
    ],
)
async def test_what_does_not_fit_is_refused_with_the_reason(
    serve: Serve, tmp_path: Path, path: str, body: Any, status: int, message: str
) -> None:
    client = await serve(models.linear(tmp_path / "double"))
    answer = await client.post(path, data=body if isinstance(body, str) else json.dumps(body))
    assert answer.status == status
    assert message in (await answer.json())["error"]


async def test_a_model_that_fails_says_so_and_goes_on(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.lookup(tmp_path / "lookup"))
    bad = await client.post("/v2/models/lookup/infer", json=inputs({"name": "index", "data": [99]}))
    assert bad.status == 500
    assert "indices element out of data bounds" in (await bad.json())["error"]
    good = await client.post("/v2/models/lookup/infer", json=inputs({"name": "index", "data": [3]}))
    assert (await good.json())["outputs"][0]["data"] == [30.0]


async def test_paddle_servings_feed_and_fetch(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.linear(tmp_path / "double"))
    body = {"feed": [{"x": [1, 2, 3]}, {"x": [4, 5, 6]}], "fetch": ["y"]}
    assert await (await client.post("/double/prediction", json=body)).json() == {
        "result": {"y": [[2, 4, 6], [8, 10, 12]]}
    }


async def test_an_output_that_the_model_does_not_have_is_refused(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.linear(tmp_path / "double"))
    tensor = {"name": "x", "elem_type": 1, "shape": [1, 3], "float_data": [1, 2, 3]}
    for path, body in (
        ("/double/prediction", {"feed": [{"x": [1, 2, 3]}], "fetch": ["y", "scores"]}),
        ("/GeneralModelService/inference", {"tensor": [tensor], "fetch_var_names": ["scores"]}),
        ("/v2/models/double/infer", {**inputs({"name": "x", "data": [[1, 2, 3]]}), "outputs": [{"name": "scores"}]}),
    ):
        refused = await client.post(path, json=body)
        assert (refused.status, (await refused.json())["error"]) == (400, "unknown output 'scores'; the model gives y")


async def test_paddle_servings_keys_and_values(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.linear(tmp_path / "double"))
    answer = await client.post("/double/prediction", json={"key": ["x"], "value": ["[1, 2, 3]"]})
    assert await answer.json() == {
        "err_no": 0,
        "err_msg": "",
        "key": ["y"],
        "value": ["[[2.0, 4.0, 6.0]]"],
        "tensors": [],
    }


async def test_paddle_servings_general_service(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.lookup(tmp_path / "lookup"))
    tensor = {"alias_name": "index", "name": "i", "elem_type": 0, "shape": [2], "int64_data": [1, 2]}
    body = {"tensor": [tensor], "fetch_var_names": ["value"], "log_id": 5}
    answer = await (await client.post("/GeneralModelService/inference", json=body)).json()
    assert (answer["err_no"], answer["log_id"]) == (0, 5)
    expected = {"name": "value", "alias_name": "value", "elem_type": 1, "shape": [2], "float_data": [10.0, 20.0]}
    assert answer["outputs"][0]["tensor"] == [expected]


async def test_a_processor_stands_between_clients_and_the_model(serve: Serve, tmp_path: Path) -> None:
    folder = models.linear(tmp_path / "m")
    (folder / "serving.yaml").write_text("name: words\nprocessor: process.py:Count\n")
    (folder / "process.py").write_text(
        "class Count:\n"
        "    def preprocess(self, inputs):\n"
        "        return {'x': [len(word) for word in inputs['words'].split()]}\n"
        "    def postprocess(self, outputs, inputs):\n"
        "        return [{'lengths': row.tolist(), 'of': entry['words']}\n"
        "                for row, entry in zip(outputs['y'], inputs)]\n"
    )
    client = await serve(folder)
    answer = await client.post("/words/prediction", json={"feed": [{"words": "a bb ccc"}], "fetch": ["word_seg"]})
    assert await answer.json() == {"result": [{"lengths": [2.0, 4.0, 6.0], "of": "a bb ccc"}]}
    wrong = await client.post("/words/prediction", json={"feed": [{"text": "a"}]})
    assert wrong.status == 400
    assert "the input cannot be processed: KeyError: 'words'" in (await wrong.json())["error"]


async def test_clients_may_call_tensors_by_other_names(serve: Serve, tmp_path: Path) -> None:
    folder = models.linear(tmp_path / "m")
    (folder / "serving.yaml").write_text("inputs: {image: x}\noutputs: {score: y}\n")
    client = await serve(folder)
    assert (await (await client.get("/v2/models/m")).json())["inputs"][0]["name"] == "image"
    body = inputs({**ROW, "name": "image"}, outputs=[{"name": "score"}])
    output = (await (await client.post("/v2/models/m/infer", json=body)).json())["outputs"][0]
    assert (output["name"], output["data"]) == ("score", [2.0, 4.0, 6.0])


async def test_a_name_that_the_model_does_not_have_is_reported(serve: Serve, tmp_path: Path) -> None:
    folder = models.linear(tmp_path / "m")
    (folder / "serving.yaml").write_text("outputs: {score: z}\n")
    with pytest.raises(ModelError, match=r"renames the output 'z', which the model does not have \(y\)"):
        await serve(folder)


async def test_batches_show_in_the_metrics(serve: Serve, tmp_path: Path) -> None:
    client = await serve(models.linear(tmp_path / "double"))
    await asyncio.gather(*(client.post("/v2/models/double/infer", json=inputs(ROW)) for _ in range(20)))
    text = await (await client.get("/metrics")).text()
    assert 'paddlecloud_serving_requests_total{model="double",code="200"} 20' in text
    assert 'paddlecloud_serving_batch_rows_sum{model="double"} 20' in text


async def test_more_than_may_wait_is_refused_with_a_time_to_come_again(serve: Serve, tmp_path: Path) -> None:
    folder = models.linear(tmp_path / "double")
    (folder / "serving.yaml").write_text("batch: {rows: 1, waiting: 1}")
    client = await serve(folder)
    model, free = serve.slot.model(), threading.Event()
    for _ in range(2):  # one for each of the two workers
        model._batches._threads.submit(free.wait, 60)

    async def ask() -> int:
        return (await client.post("/v2/models/double/infer", json=inputs(ROW))).status

    asked = []
    for waiting in (0, 0, 1):  # two are with the workers, one waits
        asked.append(asyncio.ensure_future(ask()))
        await eventually(lambda waiting=waiting: (model._users, model.waiting) == (len(asked), waiting))
    refused = await client.post("/v2/models/double/infer", json=inputs(ROW))
    assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
    assert "wait already" in (await refused.json())["error"]
    free.set()
    assert await asyncio.gather(*asked) == [200, 200, 200]


@pytest.mark.parametrize("warm_up", [True, False])
async def test_a_model_is_run_before_its_first_request_unless_switched_off(
    serve: Serve, tmp_path: Path, warm_up: bool
) -> None:
    folder = models.linear(tmp_path / "double")
    (folder / "serving.yaml").write_text(f"warmUp: {str(warm_up).lower()}")
    client = await serve(folder)
    stages = serve.slot.model().stages
    assert ("warmUp" in stages) is warm_up
    assert (await client.post("/v2/models/double/infer", json=inputs(ROW))).status == 200


async def test_a_new_version_takes_over_without_a_dropped_request(serve: Serve, tmp_path: Path) -> None:
    root = tmp_path / "scale"
    models.linear(root / "1", factor=1)
    client = await serve(root)
    answers, over = [], asyncio.Event()

    async def ask() -> None:
        while not over.is_set():
            answer = await client.post("/scale/prediction", json={"feed": [{"x": [1, 1, 1]}]})
            assert answer.status == 200, await answer.text()
            answers.append((await answer.json())["result"]["y"][0][0])

    askers = [asyncio.create_task(ask()) for _ in range(8)]
    for version in range(1, 7):
        models.linear(root / str(version), factor=version)
        await serve.slot.load()
        before = len(answers)
        while len(answers) < before + 20:
            await asyncio.sleep(0)
    over.set()
    await asyncio.gather(*askers)
    assert sorted(set(answers)) == [1, 2, 3, 4, 5, 6]


async def test_a_model_that_is_overwritten_is_not_logged_as_another_version(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await serve(models.linear(tmp_path / "double"))
    models.linear(tmp_path / "double", factor=3)
    await serve.slot.load()
    assert "version 1 was changed" in caplog.text


async def test_a_damaged_version_is_reported_and_the_old_one_stays(serve: Serve, tmp_path: Path) -> None:
    root = tmp_path / "scale"
    models.linear(root / "1", factor=1)
    client = await serve(root)
    (root / "2").mkdir()
    (root / "2" / "model.onnx").write_bytes(b"not a model")
    refused = await client.post("/v2/repository/models/scale/load")
    assert refused.status == 422
    assert "model.onnx cannot be loaded" in (await refused.json())["error"]
    answer = await client.post("/scale/prediction", json={"feed": [{"x": [1, 1, 1]}]})
    assert (await answer.json())["result"]["y"] == [[1, 1, 1]]


def damaged(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(b"not a model")
    return folder


@pytest.mark.parametrize("content", ["a damaged file", "no file"])
async def test_a_start_falls_back_to_the_newest_version_that_loads(
    serve: Serve, tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paddlecloud.serving.slot.LOOK_EVERY", 0.01)
    root = tmp_path / "scale"
    for version in (1, 2):
        models.linear(root / str(version), factor=version)
    if content == "no file":
        (root / "10").mkdir()
    else:
        damaged(root / "10")
    client = await serve(root)
    entry = (await (await client.get("/v2/repository/index")).json())[0]
    assert (entry["version"], entry["state"]) == ("2", "READY")
    assert entry["reason"].startswith(f"the newest version is not served, version 2 is: {root}/10")
    assert entry["reason"] in caplog.text
    follower = asyncio.create_task(serve.slot.follow())
    models.linear(root / "10", factor=3)
    while serve.slot.model().version != "10":
        await asyncio.sleep(0.01)
    assert serve.slot.problem == ""
    follower.cancel()


async def test_where_no_version_loads_the_newest_is_named(serve: Serve, tmp_path: Path) -> None:
    for version in ("1", "2"):
        damaged(tmp_path / "scale" / version)
    with pytest.raises(ModelError, match="/scale/2/model.onnx cannot be loaded"):
        await serve(tmp_path / "scale")


async def test_a_served_version_that_is_damaged_is_not_given_up_for_an_older_one(serve: Serve, tmp_path: Path) -> None:
    root = tmp_path / "scale"
    for version in (1, 2):
        models.linear(root / str(version), factor=version)
    client = await serve(root)
    damaged(root / "2")
    assert (await client.post("/v2/repository/models/scale/load")).status == 422
    assert serve.slot.model().version == "2"


async def test_messages_call_the_folder_what_its_owner_calls_it(tmp_path: Path) -> None:
    folder = damaged(tmp_path / "mounted")
    slot = Slot(folder, name="x", resources=Resources(), metrics=Metrics(), source="/home/ada/digits")
    with pytest.raises(ModelError) as refused:
        await slot.load()
    assert str(refused.value).startswith("/home/ada/digits/model.onnx cannot be loaded")
    assert str(folder) not in str(refused.value)


async def test_new_versions_are_found_by_themselves(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paddlecloud.serving.slot.LOOK_EVERY", 0.01)
    root = tmp_path / "scale"
    models.linear(root / "1", factor=1)
    await serve(root)
    slot = serve.slot
    follower = asyncio.create_task(slot.follow())
    (root / "2").mkdir()  # half-copied: not a model yet
    (root / "2" / "model.onnx").write_bytes(b"")
    while not slot.problem:
        await asyncio.sleep(0.01)
    assert slot.model().version == "1"
    models.linear(root / "2", factor=2)
    while slot.model().version != "2":
        await asyncio.sleep(0.01)
    assert slot.problem == ""
    follower.cancel()
