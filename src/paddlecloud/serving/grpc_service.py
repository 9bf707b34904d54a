"""The Open Inference Protocol over gRPC, beside HTTP and on the same models and batches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from paddlecloud import __version__
from paddlecloud.serving import triton, wire
from paddlecloud.serving.errors import BadInput, ServingError
from paddlecloud.serving.grpc_messages import PACKAGE, message
from paddlecloud.serving.intake import Intake
from paddlecloud.serving.limits import MOST_PARTS
from paddlecloud.serving.model import Model
from paddlecloud.serving.slot import Slot
from paddlecloud.serving.tensors import Feeds, datatype_of, from_bytes, from_json, to_bytes

_CODES = {
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
MOST_CALLS = 256
"""Calls under way at the same time; gRPC refuses the next one. While messages arrive only this limits them."""
_INFER_SCHEMA: wire.Schema = {4: {2: {}}, 5: {4: {2: {}}, 5: {}}, 6: {2: {2: {}}}}
"""Fields of ModelInferRequest that hold messages: parameters, inputs with their contents, outputs."""
_CONTENTS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
"""Where a tensor of a type lies that is not sent as raw bytes."""


def build(slot: Slot, intake: Intake) -> Any:
    """A `grpc.aio.Server` without a port yet."""
    options = [("grpc.max_receive_message_length", intake.largest), ("grpc.so_reuseport", 0)]
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=MOST_CALLS)
    calls = _Calls(slot, intake)
    methods = {
        "ServerLive": calls.server_live,
        "ServerReady": calls.server_ready,
        "ServerMetadata": calls.server_metadata,
        "ModelReady": calls.model_ready,
        "ModelMetadata": calls.model_metadata,
        "ModelInfer": calls.model_infer,
        "ModelConfig": calls.model_config,
        "ModelStatistics": calls.model_statistics,
    }
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            _refusing(method, message(f"{name}Request"), intake),  # gRPC itself would decode on the event loop
            response_serializer=message(f"{name}Response").SerializeToString,
        )
        for name, method in methods.items()
    }
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(f"{PACKAGE}.GRPCInferenceService", handlers),)
    )
    return server


class _Calls:
    def __init__(self, slot: Slot, intake: Intake) -> None:
        self._slot = slot
        self._intake = intake

    async def server_live(self, request: Any) -> Any:
        return message("ServerLiveResponse")(live=True)

    async def server_ready(self, request: Any) -> Any:
        return message("ServerReadyResponse")(ready=self._slot.ready)

    async def server_metadata(self, request: Any) -> Any:
        return message("ServerMetadataResponse")(name="paddlecloud", version=__version__, extensions=triton.EXTENSIONS)

    async def model_ready(self, request: Any) -> Any:
        self._slot.model(request.name, request.version)
        return message("ModelReadyResponse")(ready=True)

    async def model_metadata(self, request: Any) -> Any:
        return message("ModelMetadataResponse")(**self._slot.model(request.name, request.version).describe())

    async def model_config(self, request: Any) -> Any:
        config = triton.config(self._slot.model(request.name, request.version))
        for tensor in (*config["input"], *config["output"]):
            tensor["data_type"] = triton.DATA_TYPES.index(tensor["data_type"])
        for group in config["instance_group"]:
            group["kind"] = triton.KINDS.index(group["kind"])
        return message("ModelConfigResponse")(config=config)

    async def model_statistics(self, request: Any) -> Any:
        model = self._slot.model(request.name or None, request.version)
        return message("ModelStatisticsResponse")(**triton.statistics(model))

    async def model_infer(self, request: Any) -> Any:
        with self._slot.using(request.model_name, request.model_version) as model:
            feeds = await self._intake.decode(request.ByteSize(), _feeds, model, request)
            outputs = await model.infer(feeds, fetch=[output.name for output in request.outputs] or None)
            return _response(model, request.id, outputs)


def _feeds(model: Model, request: Any) -> Feeds:
    raw = list(request.raw_input_contents)
    if raw and len(raw) != len(request.inputs):
        raise BadInput(f"{len(request.inputs)} inputs, but {len(raw)} raw contents")
    feeds: Feeds = {}
    for number, tensor in enumerate(request.inputs):
        spec, shape = model.input(tensor.name, tensor.datatype), list(tensor.shape)
        if raw:
            feeds[tensor.name] = from_bytes(spec, raw[number], shape=shape, datatype=tensor.datatype)
        elif tensor.datatype not in _CONTENTS:
            raise BadInput(f"input {tensor.name!r}: {tensor.datatype or 'no datatype'} needs raw_input_contents")
        else:
            values = list(getattr(tensor.contents, _CONTENTS[tensor.datatype]))
            feeds[tensor.name] = from_json(spec, values, shape=shape, datatype=tensor.datatype)
    return feeds


def _response(model: Model, id: str, outputs: Feeds) -> Any:
    listed = [
        {"name": name, "datatype": datatype_of(array), "shape": list(array.shape)} for name, array in outputs.items()
    ]
    return message("ModelInferResponse")(
        model_name=model.name,
        model_version=model.version,
        id=id,
        outputs=listed,
        raw_output_contents=[to_bytes(array) for array in outputs.values()],
    )


def parse(kind: Any, raw: bytes) -> Any:
    """The message, after a look at how many fields it has: one of two bytes costs a hundred once it is decoded."""
    try:
        for _ in wire.walk(raw, _INFER_SCHEMA, most=MOST_PARTS):
            pass
        return kind.FromString(raw)
    except (wire.Malformed, DecodeError) as error:
        raise BadInput(f"the message cannot be read: {error}") from error


def _refusing(
    method: Callable[[Any], Awaitable[Any]], kind: Any, intake: Intake
) -> Callable[[bytes, Any], Awaitable[Any]]:
    async def call(raw: bytes, context: Any) -> Any:
        try:
            with intake.message(raw):
                return await method(await intake.decode(len(raw), parse, kind, raw))
        except ServingError as error:
            await context.abort(getattr(grpc.StatusCode, _CODES.get(error.status, "INTERNAL")), str(error))

    return call
