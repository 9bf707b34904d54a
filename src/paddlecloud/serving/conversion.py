"""A model in another form: Paddle to ONNX, to the layout of Paddle Serving, and back from that. Run inside a pod.

    python -m paddlecloud.serving.conversion --to onnx|serving|paddle SOURCE TARGET

An ONNX export is compared with its original on generated inputs (`agreement`) before it is given out: some operators
are converted wrongly, in silence. The last line of output is JSON: `tools`, the versions of what was used, and either
`check`, how the result was judged, or `refused`, why there is none. Files that are no part of the model (labels,
settings) go with it.

Paddle Serving's layout is a folder `server` with the model and `serving_server_conf.prototxt`, and a folder `client`
with `serving_client_conf.prototxt`: names, types and fixed dimensions of inputs and outputs.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from paddlecloud.serving import agreement, model_folder, runners
from paddlecloud.serving.errors import ModelError
from paddlecloud.serving.model_folder import ModelFiles
from paddlecloud.serving.tensors import TensorSpec

FORMS = ("onnx", "serving", "paddle")
REFUSED = 3
SERVER, CLIENT = "server", "client"
SERVING_TYPES = {"INT64": 0, "FP32": 1, "INT32": 2, "FP64": 3, "INT16": 4, "FP16": 5, "UINT8": 7, "INT8": 8, "BOOL": 9}
"""Types of tensors in Paddle Serving's general_model_config.proto."""
OPSET = 16


class Differs(ModelError):
    """The result does not answer as the original does."""


def convert(to: str, source: Path, target: Path) -> str:
    """How the result was judged. Raises `ModelError`."""
    target.mkdir(parents=True)
    if to == "paddle":
        return _from_serving(source, target)
    found = model_folder.find(source)
    if found.params is None:
        raise ModelError(f"{found.program.name} is ONNX already; only Paddle models are converted")
    return _to_onnx(source, found, target) if to == "onnx" else _to_serving(source, found, target)


def _to_onnx(source: Path, found: ModelFiles, target: Path) -> str:
    import paddle2onnx

    assert found.params is not None
    made = target / "model.onnx"
    try:
        paddle2onnx.export(str(found.program), str(found.params), str(made), opset_version=OPSET, verbose=False)
    except Exception as error:
        raise ModelError(f"paddle2onnx does not convert it: {str(error).strip()[:400]}") from error
    if not made.exists():
        raise ModelError("paddle2onnx does not convert it, and its output says why")
    original = runners.load(found, threads=1)
    export = runners.load(model_folder.find(target), threads=1)
    if why := agreement.difference(original, export):
        raise Differs(why)
    _copy_others(source, target, (found.program, found.params))
    return f"answers as the original on {agreement.ROUNDS} generated inputs"


def _to_serving(source: Path, found: ModelFiles, target: Path) -> str:
    assert found.params is not None
    loaded = runners.load(found, threads=1)
    for name in (SERVER, CLIENT):
        (target / name).mkdir()
    shutil.copyfile(found.program, target / SERVER / f"inference{found.program.suffix}")
    shutil.copyfile(found.params, target / SERVER / f"inference{model_folder.PARAMS}")
    text = prototxt(loaded.inputs, loaded.outputs)
    (target / SERVER / "serving_server_conf.prototxt").write_text(text, encoding="utf-8")
    (target / CLIENT / "serving_client_conf.prototxt").write_text(text, encoding="utf-8")
    _copy_others(source, target / SERVER, (found.program, found.params))
    return "the files are those of the original"


def _from_serving(source: Path, target: Path) -> str:
    server = next((path for name in (SERVER, "serving_server") if (path := source / name).is_dir()), None)
    if server is None:
        raise ModelError(f"it is no layout of Paddle Serving: there is no folder {SERVER} or serving_server in it")
    found = model_folder.read(server, server)
    if found.params is None:
        raise ModelError("its folder of the server has no Paddle model")
    shutil.copyfile(found.program, target / f"inference{found.program.suffix}")
    shutil.copyfile(found.params, target / f"inference{model_folder.PARAMS}")
    runners.load(model_folder.find(target), threads=1)
    _copy_others(server, target, (found.program, found.params))
    return "the files are those of the original, and load"


def prototxt(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> str:
    """As Paddle Serving's own converter writes it: free dimensions are left out."""
    blocks = [*_blocks("feed", inputs), *_blocks("fetch", outputs)]
    return "".join(f"{name} {{\n{body}}}\n" for name, body in blocks)


def _blocks(kind: str, specs: Iterable[TensorSpec]) -> Iterable[tuple[str, str]]:
    for spec in specs:
        name = json.dumps(spec.name)
        if spec.datatype not in SERVING_TYPES:
            raise ModelError(f"Paddle Serving has no tensors of {spec.datatype}, as {spec.name} is one")
        lines = [f"name: {name}", f"alias_name: {name}", "is_lod_tensor: false"]
        lines.append(f"{kind}_type: {SERVING_TYPES[spec.datatype]}")
        lines += [f"shape: {size}" for size in spec.shape or () if size >= 0]
        yield f"{kind}_var", "".join(f"  {line}\n" for line in lines)


def _copy_others(source: Path, target: Path, known: Iterable[Path]) -> None:
    """What lies beside the model, but no other form of it."""
    skipped = {path.resolve() for path in known}
    for path in sorted(source.rglob("*")):
        form = path.suffix in (".onnx", ".pdmodel", model_folder.PARAMS) or path.name.endswith(".prototxt")
        if not path.is_file() or path.is_symlink() or path.resolve() in skipped or form:
            continue
        place = target / path.relative_to(source)
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def tools(to: str) -> dict[str, str]:
    wanted = {"onnx": ("paddlepaddle", "paddle2onnx", "onnxruntime")}.get(to, ("paddlepaddle",))
    found = {}
    for name in wanted:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "unknown"
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="paddlecloud.serving.conversion", description=__doc__)
    parser.add_argument("--to", choices=FORMS, required=True)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    args = parser.parse_args(arguments)
    said: dict[str, Any] = {"tools": tools(args.to)}
    try:
        said["check"] = convert(args.to, args.source, args.target)
    except Differs as error:
        said |= {"refused": str(error), "reason": "Differs"}
    except ModelError as error:
        said |= {"refused": str(error), "reason": "Invalid"}
    print("\n" + json.dumps(said), flush=True)
    return REFUSED if "refused" in said else 0


if __name__ == "__main__":
    sys.exit(main())
