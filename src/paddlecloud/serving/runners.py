"""What runs a model: paddle.inference or onnxruntime behind one interface.

A runner is used by one thread at a time; `clone` gives another thread its own, sharing the weights. Both release the
interpreter while they compute, so clones run side by side.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any, Protocol

from paddlecloud.serving import onnx_files, paddle_program
from paddlecloud.serving.errors import ModelError
from paddlecloud.serving.model_folder import ModelFiles
from paddlecloud.serving.tensors import NAMES, Feeds, TensorSpec


class Runner(Protocol):
    platform: str
    device: str
    """`gpu` or `cpu`: where it computes. An engine built without CUDA stays on the CPU whatever it is asked."""
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def run(self, feeds: Feeds) -> Feeds: ...

    def clone(self) -> Runner: ...


def import_engine(files: ModelFiles) -> None:
    """Apart from `load`, because it is most of a cold start and free in a process forked from a warm parent."""
    module, package = ("onnxruntime", "onnxruntime") if files.onnx else ("paddle.inference", "paddlepaddle")
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise ModelError(f"{files.program.name} needs {package}, which is not installed here ({error})") from error


def load(files: ModelFiles, *, threads: int) -> Runner:
    """A runner for the model, on a GPU where the pod was given one; `ModelError` if it cannot be loaded."""
    _check_memory(files)
    try:
        return OnnxRunner(files, threads=threads) if files.onnx else PaddleRunner(files, threads=threads)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"{files.program} cannot be loaded: {str(error).strip()[:400]}") from error


class PaddleRunner:
    platform = "paddle"
    device = "cpu"

    def __init__(self, files: ModelFiles, *, threads: int) -> None:
        from paddle import inference

        paddle_program.check(files.program)
        config = inference.Config(str(files.program), str(files.params))
        config.disable_glog_info()
        config.set_cpu_math_library_num_threads(threads)
        if _gpu_given():
            config.enable_use_gpu(256, 0)  # megabytes to begin with; it grows
            self.device = "gpu" if config.use_gpu() else "cpu"
        self._adopt(inference.create_predictor(config), files.program)

    def _adopt(self, predictor: Any, program: Path) -> None:
        self._program = program
        self._predictor = predictor
        self._inputs = {name: predictor.get_input_handle(name) for name in predictor.get_input_names()}
        self._outputs = {name: predictor.get_output_handle(name) for name in predictor.get_output_names()}
        known = paddle_program.declared(program)
        self.inputs = tuple(known.get(name, TensorSpec(name, "FP32")) for name in self._inputs)
        self.outputs = tuple(known.get(name, TensorSpec(name, "FP32")) for name in self._outputs)

    def run(self, feeds: Feeds) -> Feeds:
        for name, handle in self._inputs.items():
            handle.copy_from_cpu(feeds[name])
        self._predictor.run()
        return {name: handle.copy_to_cpu() for name, handle in self._outputs.items()}

    def clone(self) -> PaddleRunner:
        twin = object.__new__(PaddleRunner)
        twin.device = self.device
        twin._adopt(self._predictor.clone(), self._program)
        return twin


class OnnxRunner:
    """Its session is safe for several threads: a clone is the runner itself."""

    platform = "onnx"

    def __init__(self, files: ModelFiles, *, threads: int) -> None:
        import onnxruntime

        onnx_files.check(files.program)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        wanted = ["CUDAExecutionProvider", "CPUExecutionProvider"] if _gpu_given() else ["CPUExecutionProvider"]
        providers = [name for name in wanted if name in onnxruntime.get_available_providers()]
        self._session = onnxruntime.InferenceSession(str(files.program), options, providers=providers)
        self.device = "gpu" if "CUDAExecutionProvider" in self._session.get_providers() else "cpu"
        self.inputs = tuple(_onnx_spec(value) for value in self._session.get_inputs())
        self.outputs = tuple(_onnx_spec(value) for value in self._session.get_outputs())
        self._names = [spec.name for spec in self.outputs]

    def run(self, feeds: Feeds) -> Feeds:
        return dict(zip(self._names, self._session.run(self._names, feeds), strict=True))

    def clone(self) -> OnnxRunner:
        return self


def idle_gpu(runner: Runner) -> str:
    """A sentence where the pod was given a GPU that its model does not use; empty otherwise."""
    if runner.device == "gpu" or not _gpu_given():
        return ""
    package = {"paddle": "paddlepaddle-gpu", "onnx": "onnxruntime-gpu"}[runner.platform]
    return f"the pod has a GPU, and the model computes on the CPU: its image has no {package} that can use this one"


_ONNX_TYPES = {"float": "FP32", "double": "FP64", "float16": "FP16", "string": "BYTES", "bool": "BOOL"}


def _onnx_spec(value: Any) -> TensorSpec:
    element = str(value.type).removeprefix("tensor(").removesuffix(")")
    shape = tuple(size if isinstance(size, int) else -1 for size in value.shape)
    return TensorSpec(value.name, _ONNX_TYPES.get(element) or NAMES.get(element, "FP32"), shape)


def _gpu_given() -> bool:
    devices = os.environ.get("CUDA_VISIBLE_DEVICES", os.environ.get("NVIDIA_VISIBLE_DEVICES", ""))
    return devices not in ("", "none", "void", "-1") and Path("/dev/nvidiactl").exists()


def _check_memory(files: ModelFiles) -> None:
    """Weights are read into memory whole: refuse with figures instead of being killed for it."""
    free = _free_memory()
    if free is not None and files.size > free:
        raise ModelError(
            f"the model is {files.size >> 20} MiB, {free >> 20} MiB of memory are free: "
            "give the service more memory (spec.resources)"
        )


def _free_memory() -> int | None:
    found: list[int] = []
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            found.append(int(Path(path).read_text()))
        except (OSError, ValueError):
            continue  # no such hierarchy here, or no limit
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found.append(next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable")))
    except (OSError, StopIteration, ValueError):
        pass  # not Linux: the machine will judge
    return min(found, default=None)
