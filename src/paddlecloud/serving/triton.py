"""What Triton's clients ask beyond the Open Inference Protocol: a model's configuration and statistics. Pure."""

from __future__ import annotations

from typing import Any

from paddlecloud.serving.model import Model
from paddlecloud.serving.tensors import TensorSpec

EXTENSIONS = ["binary_tensor_data", "model_configuration", "statistics"]

DATA_TYPES = (
    "TYPE_INVALID", "TYPE_BOOL", "TYPE_UINT8", "TYPE_UINT16", "TYPE_UINT32", "TYPE_UINT64", "TYPE_INT8", "TYPE_INT16",
    "TYPE_INT32", "TYPE_INT64", "TYPE_FP16", "TYPE_FP32", "TYPE_FP64", "TYPE_STRING", "TYPE_BF16",
)  # fmt: skip
KINDS = ("KIND_AUTO", "KIND_GPU", "KIND_CPU")
"""Names of Triton's enumerations; gRPC sends their places in these lists."""
BACKENDS = {"onnx": "onnxruntime", "paddle": "paddle"}


def config(model: Model) -> dict[str, Any]:
    """As Triton describes it. A model whose tensors all begin with a free dimension takes batches: then `dims` are
    those of one row, and requests of up to `max_batch_size` rows run in one piece."""
    tensors = (*model.inputs, *model.outputs)
    batched = all(spec.shape is not None and spec.shape[:1] == (-1,) for spec in tensors)
    limits = model.files.settings.batch
    return {
        "name": model.name,
        "platform": "onnxruntime_onnx" if model.platform == "onnx" else model.platform,
        "backend": BACKENDS[model.platform],
        "max_batch_size": limits.rows if batched else 0,
        "input": [_tensor(spec, batched=batched) for spec in model.inputs],
        "output": [_tensor(spec, batched=batched) for spec in model.outputs],
        "dynamic_batching": {"max_queue_delay_microseconds": round(limits.delay * 1e6)},
        "instance_group": [{"name": model.name, "kind": f"KIND_{model.device.upper()}", "count": model.workers}],
        "default_model_filename": model.files.program.name,
    }


def statistics(model: Model) -> dict[str, Any]:
    return {"model_stats": [{"name": model.name, "version": model.version, **model.statistics.as_json()}]}


def _tensor(spec: TensorSpec, *, batched: bool) -> dict[str, Any]:
    kind = "TYPE_STRING" if spec.datatype == "BYTES" else f"TYPE_{spec.datatype}"
    shape = list(spec.shape or ())
    return {"name": spec.name, "data_type": kind, "dims": shape[1:] if batched else shape}
