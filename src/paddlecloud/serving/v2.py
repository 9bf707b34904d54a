"""The Open Inference Protocol over HTTP: reading requests, writing answers. Routes are in `app`.

JSON, and its binary form: tensors whose bytes follow the JSON, as `Inference-Header-Content-Length` announces.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from paddlecloud.serving.errors import BadInput
from paddlecloud.serving.model import Model
from paddlecloud.serving.tensors import Feeds, as_lists, datatype_of, from_bytes, from_json, parse_json, to_bytes

HEADER_LENGTH = "Inference-Header-Content-Length"


@dataclass(frozen=True, slots=True)
class Request:
    id: str | None
    feeds: Feeds
    fetch: list[str] | None
    binary: frozenset[str]
    """Outputs wanted as bytes; `*` stands for all."""


def read(model: Model, body: bytes, header_length: str | None, largest_json: int) -> Request:
    header, tail = _parts(body, header_length)
    content = parse_json(header, largest=largest_json)
    inputs = content.get("inputs")
    if not isinstance(inputs, list) or not inputs:
        raise BadInput('the body needs "inputs": a list of {"name", "shape", "datatype", "data"}')
    feeds: Feeds = {}
    at = 0
    for item in inputs:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise BadInput("every input needs a name")
        if item["name"] in feeds:
            raise BadInput(f"input {item['name']!r} is given twice")
        size = _parameter(item, "binary_data_size")
        feeds[item["name"]] = _tensor(model, item, tail[at : at + size] if size is not None else None)
        at += size or 0
    if at != len(tail):
        raise BadInput(f"{len(tail)} bytes follow the JSON, the inputs announce {at}")
    return Request(content.get("id"), feeds, *_wanted(content))


def write(model: Model, request: Request, outputs: Feeds) -> tuple[bytes, int | None]:
    """The body, and the length of its JSON part where bytes follow."""
    listed: list[dict[str, Any]] = []
    tail: list[bytes] = []
    for name, array in outputs.items():
        entry: dict[str, Any] = {"name": name, "datatype": datatype_of(array), "shape": list(array.shape)}
        if request.binary & {name, "*"}:
            raw = to_bytes(array)
            entry["parameters"] = {"binary_data_size": len(raw)}
            tail.append(raw)
        else:
            entry["data"] = as_lists(array.reshape(-1))
        listed.append(entry)
    answer: dict[str, Any] = {"model_name": model.name, "model_version": model.version, "outputs": listed}
    if request.id is not None:
        answer["id"] = request.id
    header = json.dumps(answer, separators=(",", ":")).encode()
    return b"".join((header, *tail)), len(header) if tail else None


def example(model: Model) -> dict[str, Any]:
    """One row of zeros (or empty texts) for every input; a free dimension is as small as it can be."""
    inputs = []
    for spec in model.inputs:
        shape = [1 if size < 0 else size for size in spec.shape or ()]
        value: Any = "" if spec.datatype == "BYTES" else 0
        inputs.append({**spec.as_json(), "shape": shape, "data": [value] * math.prod(shape)})
    return {"inputs": inputs}


def _parts(body: bytes, header_length: str | None) -> tuple[bytes, bytes]:
    if header_length is None:
        return body, b""
    if not header_length.isdecimal() or len(header_length) > 20 or int(header_length) > len(body):
        raise BadInput(f"{HEADER_LENGTH}: {header_length!r} is no length within the body")
    return body[: int(header_length)], body[int(header_length) :]


def _tensor(model: Model, item: dict[str, Any], raw: bytes | None) -> Any:
    spec = model.input(item["name"], item.get("datatype"))
    if raw is not None:
        return from_bytes(spec, raw, shape=item.get("shape"), datatype=str(item.get("datatype")))
    if "data" not in item:
        raise BadInput(f"input {spec.name!r} has no data")
    return from_json(spec, item["data"], shape=item.get("shape"), datatype=item.get("datatype"))


def _wanted(content: dict[str, Any]) -> tuple[list[str] | None, frozenset[str]]:
    outputs = content.get("outputs")
    if outputs is not None and not (
        isinstance(outputs, list)
        and all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in outputs)
    ):
        raise BadInput('"outputs" must be a list of {"name"}')
    fetch = [item["name"] for item in outputs] if outputs else None
    binary = {item["name"] for item in outputs or () if _parameter(item, "binary_data")}
    if _parameter(content, "binary_data_output"):
        binary.add("*")
    return fetch, frozenset(binary)


def _parameter(item: dict[str, Any], name: str) -> Any:
    parameters = item.get("parameters")
    value = parameters.get(name) if isinstance(parameters, dict) else None
    if name.endswith("_size") and value is not None and not (isinstance(value, int) and value >= 0):
        raise BadInput(f"{name} must be a number of bytes")
    return value
