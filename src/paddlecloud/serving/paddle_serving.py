"""The requests that clients of Paddle Serving send, and the answers they expect.

    POST /NAME/prediction   {"feed": [{…}], "fetch": ["score"]}   → {"result": …}
    POST /NAME/prediction   {"key": […], "value": […]}   → {"err_no": 0, "err_msg": "", "key": […], "value": […], …}
    POST /GeneralModelService/inference   {"tensor": [...], "fetch_var_names": [...]}

Reads requests and writes answers; routes are in `app`. bRPC is not offered.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlecloud.serving import literals, processing
from paddlecloud.serving.errors import BadInput
from paddlecloud.serving.model import Model
from paddlecloud.serving.tensors import Feeds, as_json, as_lists, from_json, parse_json

_ELEMENTS = {
    0: ("INT64", "int64_data"),
    1: ("FP32", "float_data"),
    2: ("INT32", "int_data"),
    20: ("BYTES", "string_data"),
}
_FIELDS = {datatype: (number, field) for number, (datatype, field) in _ELEMENTS.items()}


class Prediction(NamedTuple):
    entries: list[dict[str, Any]]
    fetch: list[str] | None
    keyed: bool
    """Whether it came, and is answered, as two lists."""


class General(NamedTuple):
    feeds: Feeds
    fetch: list[str] | None
    log_id: Any


def read_prediction(model: Model, raw: bytes, largest_json: int) -> Prediction:
    body = parse_json(raw, largest=largest_json)
    if "key" in body or "value" in body:
        return Prediction([_keyed(body)], None, keyed=True)
    feed = body.get("feed")
    entries = [feed] if isinstance(feed, dict) else feed
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise BadInput('the body needs "feed": a list of objects, one per row, each naming the inputs')
    fetch = _outputs(model, body.get("fetch"), others=processing.names_results(model.processor))
    return Prediction(entries, fetch, keyed=False)


def write_prediction(asked: Prediction, result: Any) -> bytes:
    if not asked.keyed:
        return as_json({"result": result})
    answers = result if isinstance(result, dict) else {"result": result}
    values = [repr(value) for value in answers.values()]
    return as_json({"err_no": 0, "err_msg": "", "key": list(answers), "value": values, "tensors": []})


def _keyed(body: dict[str, Any]) -> dict[str, Any]:
    """The pipeline form: two lists of texts. Values are JSON, Python's literals, or plain texts."""
    keys, values = body.get("key"), body.get("value")
    if not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values) or not keys:
        raise BadInput('"key" and "value" must be lists of the same length')
    read = (literals.read(value) if isinstance(value, str) else value for value in values)
    return {str(key): value for key, value in zip(keys, read, strict=True)}


def read_general(model: Model, raw: bytes, largest_json: int) -> General:
    body = parse_json(raw, largest=largest_json)
    tensors = body.get("tensor")
    if not isinstance(tensors, list) or not tensors:
        raise BadInput('the body needs "tensor": a list of {"name", "elem_type", "shape", "float_data" …}')
    feeds: Feeds = {}
    for item in tensors:
        if not isinstance(item, dict):
            raise BadInput("every tensor must be an object")
        name = str(item.get("alias_name") or item.get("name") or "")
        if name in feeds:
            raise BadInput(f"tensor {name!r} is given twice")
        feeds[name] = _tensor(model, name, item)
    return General(feeds, _outputs(model, body.get("fetch_var_names"), others=False), body.get("log_id", 0))


def _tensor(model: Model, name: str, item: dict[str, Any]) -> Any:
    number = item.get("elem_type", 1)
    datatype, field = _ELEMENTS.get(number, ("", "")) if isinstance(number, int) else ("", "")
    if not datatype:
        known = ", ".join(f"{number} ({kind})" for number, (kind, _) in _ELEMENTS.items())
        raise BadInput(f"tensor {name!r}: unknown elem_type {item.get('elem_type')!r}; known are {known}")
    if field not in item:
        raise BadInput(f"tensor {name!r}: elem_type {number} needs {field}")
    return from_json(model.input(name, datatype), item[field], shape=item.get("shape"), datatype=datatype)


def write_general(model: Model, asked: General, outputs: Feeds) -> bytes:
    listed = [_general_tensor(name, array) for name, array in outputs.items()]
    return as_json(
        {
            "err_no": 0,
            "err_msg": "",
            "log_id": asked.log_id,
            "profile_time": [],
            "outputs": [{"engine_name": model.name, "tensor": listed}],
        }
    )


def _general_tensor(name: str, array: Any) -> dict[str, Any]:
    datatype = {"f": "FP32", "i": "INT64", "u": "INT64", "b": "INT64"}.get(array.dtype.kind, "BYTES")
    if str(array.dtype) == "int32":
        datatype = "INT32"
    number, field = _FIELDS[datatype]
    shape = list(array.shape)
    return {"name": name, "alias_name": name, "elem_type": number, "shape": shape, field: as_lists(array.reshape(-1))}


def _outputs(model: Model, fetch: Any, *, others: bool) -> list[str] | None:
    """The outputs of the model that were asked for, None for all. `others` allows names that it does not have: they are
    those of a processor's results. Else such a name is refused, as the tensor protocols refuse it (`Model.infer`)."""
    if fetch is None:
        return None
    if not isinstance(fetch, list) or not all(isinstance(name, str) for name in fetch):
        raise BadInput("the outputs to fetch must be a list of names")
    has = {spec.name for spec in model.outputs}
    return [name for name in fetch if name in has or not others] or None
