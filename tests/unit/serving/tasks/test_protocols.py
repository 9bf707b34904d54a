"""One model with a task, asked in every protocol: a picture in, its label out, several at once."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.serving.errors import ModelError

from .conftest import picture

RED, BLUE = picture((250, 0, 0)), picture((0, 0, 250))


async def test_paddle_servings_clients_get_a_label_for_each_picture(serve: Any, colours: Path) -> None:
    client = await serve(colours)
    answer = await client.post("/network/prediction", json={"feed": [{"image": RED}, {"image": BLUE}]})
    result = (await answer.json())["result"]
    assert result["label"] == ["red", "blue"]
    assert min(result["prob"]) > 0.9
    keyed = {"key": ["image"], "value": [BLUE]}
    answer = await (await client.post("/network/prediction", json=keyed)).json()
    assert answer["value"][answer["key"].index("label")] == "['blue']"
    chosen = {"feed": [{"image": RED}], "fetch": ["label"]}
    assert (await (await client.post("/network/prediction", json=chosen)).json())["result"] == {"label": ["red"]}


async def test_the_open_inference_protocol_takes_pictures_too(serve: Any, colours: Path) -> None:
    client = await serve(colours)
    described = await (await client.get("/v2/models/network")).json()
    assert described["inputs"] == [{"name": "image", "datatype": "BYTES", "shape": [-1]}]
    assert [one["name"] for one in described["outputs"]] == ["label", "prob"]
    asked = {"inputs": [{"name": "image", "datatype": "BYTES", "shape": [2], "data": [BLUE, RED]}]}
    answer = await (await client.post("/v2/models/network/infer", json=asked)).json()
    label, prob = answer["outputs"]
    assert (label["datatype"], label["data"]) == ("BYTES", ["blue", "red"])
    assert (prob["datatype"], prob["shape"]) == ("FP32", [2])


async def test_a_picture_may_come_as_the_bytes_of_its_file(serve: Any, colours: Path) -> None:
    client = await serve(colours)
    file = base64.b64decode(RED)
    tensor = len(file).to_bytes(4, "little") + file
    head = {"inputs": [{"name": "image", "datatype": "BYTES", "shape": [1], "parameters": {}}]}
    head["inputs"][0]["parameters"] = {"binary_data_size": len(tensor)}
    raw = json.dumps(head).encode()
    answer = await client.post(
        "/v2/models/network/infer", data=raw + tensor, headers={"Inference-Header-Content-Length": str(len(raw))}
    )
    assert (await answer.json())["outputs"][0]["data"] == ["red"]


async def test_clients_that_prepare_pictures_send_the_networks_own_tensor(serve: Any, colours: Path) -> None:
    client = await serve(colours)
    asked = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3, 4, 4], "data": [1] * 48}]}
    answer = await (await client.post("/v2/models/network/infer", json=asked)).json()
    assert [(one["name"], one["data"]) for one in answer["outputs"]] == [("score", [1, 1, 1])]


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"picture": RED}, "feed lacks 'image'"),
        ({"image": "nonsense!"}, "is neither a URL (http, https, data) nor base64"),
        ({"image": 7}, "a picture is a URL or base64, not int"),
        ({"image": base64.b64encode(b"GIF89a...").decode()}, "it is no picture of PNG, JPEG, BMP, WEBP"),
        ({"image": "http://127.0.0.1:1/x.png"}, "is an address inside"),
    ],
)
async def test_what_is_no_picture_is_the_clients_mistake(
    serve: Any, colours: Path, sent: dict[str, Any], words: str
) -> None:
    client = await serve(colours)
    answer = await client.post("/network/prediction", json={"feed": [sent]})
    assert answer.status == 400
    assert words in (await answer.json())["err_msg"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("task: clsa, size: [4, 4]", "'clsa' is none of clas, det, ocr-det"),
        ("task: clas", "processing.size: clas takes [HEIGHT, WIDTH] in pixels, 4096 at most; it is not there"),
        ("task: clas, size: [4, 9999]", "4096 at most"),
        ("task: clas, size: [4, 4], sise: 1", 'did you mean "size"?'),
        ("task: clas, size: [4, 4], std: [1, 0, 1]", "none of its numbers may be 0"),
        ("task: clas, size: [4, 4], labels: ../label.txt", "there is no file ../label.txt in the model's folder"),
        ("task: det, size: [4, 4]", "det is for exports of PaddleDetection"),
        ("task: text-clas, vocabulary: label.txt", "it has no [UNK]"),
        ("task: ocr-det, size: [4, 4], threshold: 2", "ocr-det takes a number from 0 to 1; not '2'"),
    ],
)
async def test_settings_that_a_task_does_not_take_name_the_field(
    serve: Any, colours: Path, line: str, words: str
) -> None:
    (colours / "serving.yaml").write_text(f"processing: {{{line}}}\n")
    with pytest.raises(ModelError) as refused:
        await serve(colours)
    assert words in str(refused.value)


async def test_a_model_has_code_of_its_own_or_a_task(serve: Any, colours: Path) -> None:
    (colours / "serving.yaml").write_text("processor: process.py\nprocessing: {task: clas, size: [4, 4]}\n")
    with pytest.raises(ModelError, match="a model has one of them"):
        await serve(colours)
