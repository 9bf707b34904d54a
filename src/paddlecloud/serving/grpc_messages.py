"""The messages of the Open Inference Protocol's gRPC form, declared here as a table instead of by generated code.

Field numbers are the protocol's; the library behind `protobuf` makes classes of them.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "inference"

# Field numbers of configuration and statistics are Triton's; what it sends as an enumeration is a number here, which
# looks the same on the wire.
# Name of a message → its fields: type, name, number. `*` marks a repeated field, `%` a map from texts.
_TABLE = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "bool live 1",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "bool ready 1",
    "ModelReadyRequest": "string name 1, string version 2",
    "ModelReadyResponse": "bool ready 1",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "string name 1, string version 2, string* extensions 3",
    "ModelMetadataRequest": "string name 1, string version 2",
    "ModelMetadataResponse": "string name 1, string* versions 2, string platform 3, .TensorMetadata* inputs 4, "
    ".TensorMetadata* outputs 5",
    "ModelMetadataResponse.TensorMetadata": "string name 1, string datatype 2, int64* shape 3",
    "ModelInferRequest": "string model_name 1, string model_version 2, string id 3, InferParameter% parameters 4, "
    ".InferInputTensor* inputs 5, .InferRequestedOutputTensor* outputs 6, bytes* raw_input_contents 7",
    "ModelInferRequest.InferInputTensor": "string name 1, string datatype 2, int64* shape 3, "
    "InferParameter% parameters 4, InferTensorContents contents 5",
    "ModelInferRequest.InferRequestedOutputTensor": "string name 1, InferParameter% parameters 2",
    "ModelInferResponse": "string model_name 1, string model_version 2, string id 3, InferParameter% parameters 4, "
    ".InferOutputTensor* outputs 5, bytes* raw_output_contents 6",
    "ModelInferResponse.InferOutputTensor": "string name 1, string datatype 2, int64* shape 3, "
    "InferParameter% parameters 4, InferTensorContents contents 5",
    "ModelConfigRequest": "string name 1, string version 2",
    "ModelConfigResponse": "ModelConfig config 1",
    "ModelConfig": "string name 1, string platform 2, int32 max_batch_size 4, ModelInput* input 5, "
    "ModelOutput* output 6, ModelInstanceGroup* instance_group 7, string default_model_filename 8, "
    "ModelDynamicBatching dynamic_batching 11, string backend 17",
    "ModelInput": "string name 1, int32 data_type 2, int64* dims 4",
    "ModelOutput": "string name 1, int32 data_type 2, int64* dims 3",
    "ModelInstanceGroup": "string name 1, int32 count 2, int32 kind 4",
    "ModelDynamicBatching": "uint64 max_queue_delay_microseconds 2",
    "ModelStatisticsRequest": "string name 1, string version 2",
    "ModelStatisticsResponse": "ModelStatistics* model_stats 1",
    "ModelStatistics": "string name 1, string version 2, uint64 last_inference 3, uint64 inference_count 4, "
    "uint64 execution_count 5, InferStatistics inference_stats 6, InferBatchStatistics* batch_stats 7",
    "InferStatistics": "StatisticDuration success 1, StatisticDuration fail 2, StatisticDuration queue 3, "
    "StatisticDuration compute_input 4, StatisticDuration compute_infer 5, StatisticDuration compute_output 6, "
    "StatisticDuration cache_hit 7, StatisticDuration cache_miss 8",
    "InferBatchStatistics": "uint64 batch_size 1, StatisticDuration compute_input 2, "
    "StatisticDuration compute_infer 3, StatisticDuration compute_output 4",
    "StatisticDuration": "uint64 count 1, uint64 ns 2",
    "InferParameter": "bool bool_param 1, int64 int64_param 2, string string_param 3",
    "InferTensorContents": "bool* bool_contents 1, int32* int_contents 2, int64* int64_contents 3, "
    "uint32* uint_contents 4, uint64* uint64_contents 5, float* fp32_contents 6, double* fp64_contents 7, "
    "bytes* bytes_contents 8",
}


def _declare() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="paddlecloud/open_inference.proto", package=PACKAGE, syntax="proto3")
    made: dict[str, Any] = {}
    for name, fields in _TABLE.items():
        outer, _, inner = name.partition(".")
        made[name] = made[outer].nested_type.add(name=inner) if inner else file.message_type.add(name=outer)
        for field in filter(None, map(str.strip, fields.split(","))):
            kind, label, number = field.split()
            _add_field(made[name], name, kind, label, int(number))
    return file


def _add_field(message: Any, owner: str, kind: str, label: str, number: int) -> None:
    descriptor = descriptor_pb2.FieldDescriptorProto
    repeated = kind[-1] in "*%"
    field = message.field.add(
        name=label,
        number=number,
        label=descriptor.LABEL_REPEATED if repeated else descriptor.LABEL_OPTIONAL,
    )
    plain = kind.rstrip("*%")
    if kind.endswith("%"):
        entry = message.nested_type.add(name=f"{label.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _add_field(entry, owner, "string", "key", 1)
        _add_field(entry, owner, plain, "value", 2)
        field.type, field.type_name = descriptor.TYPE_MESSAGE, f".{PACKAGE}.{owner}.{entry.name}"
    elif plain[0].isupper() or plain[0] == ".":
        place = f"{owner}{plain}" if plain[0] == "." else plain
        field.type, field.type_name = descriptor.TYPE_MESSAGE, f".{PACKAGE}.{place}"
    else:
        field.type = getattr(descriptor, f"TYPE_{plain.upper()}")


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_declare())


def message(name: str) -> Any:
    """The class of a message, for example `ModelInferRequest`."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
