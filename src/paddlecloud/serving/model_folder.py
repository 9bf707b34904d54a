"""A folder with a model: which files make it up, which version is newest, what its `serving.yaml` says.

    model_dir/inference.json + inference.pdiparams      Paddle 3
    model_dir/inference.pdmodel + inference.pdiparams   Paddle 2 (model.pdmodel and other stems too)
    model_dir/model.onnx                                ONNX; with a Paddle model beside it, an export of that one,
                                                        which is served if it answers alike (`agreement`)
    model_dir/1/…, model_dir/2/…                        versions; the highest number that loads is served

`serving.yaml` beside the files is optional:

    name: digits                      # default: the folder's name
    batch: {rows: 32, delayMilliseconds: 0}
    processor: process.py:Processor   # see `processing`
    processing: {task: clas, size: [224, 224], labels: label.txt}   # instead of it; see `tasks`
    inputs: {image: x}                # names clients use → names in the model
    outputs: {score: fetch_name_0}
    warmUp: true

Reads and checks; loads nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from paddlecloud.kube.wording import cause_of
from paddlecloud.serving.errors import ModelError
from paddlecloud.serving.limits import BatchLimits

SETTINGS = "serving.yaml"
PARAMS = ".pdiparams"
_PROGRAMS = (".json", ".pdmodel")
_FIELDS = ("name", "batch", "processor", "processing", "inputs", "outputs", "warmUp")


@dataclass(frozen=True, slots=True)
class Settings:
    name: str = ""
    batch: BatchLimits = field(default_factory=BatchLimits)
    processor: str = ""
    processing: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    warm_up: bool = True


@dataclass(frozen=True, slots=True)
class ModelFiles:
    folder: Path
    program: Path
    params: Path | None
    """None for ONNX, which is one file."""
    original: tuple[Path, Path] | None
    """Program and parameters of the Paddle model that the ONNX one was exported from, where they lie beside it."""
    version: str
    settings: Settings
    fingerprint: str
    """Changes when any file of the model does."""

    @property
    def onnx(self) -> bool:
        return self.params is None

    @property
    def size(self) -> int:
        return self.program.stat().st_size + (self.params.stat().st_size if self.params else 0)


def find(root: Path, *, name: str = "") -> ModelFiles:
    """The newest version below `root`; `ModelError` says what is missing."""
    return read(root, versions(root)[-1], name=name)


def versions(root: Path) -> list[Path]:
    """The folders of the versions, oldest first; `root` itself where there are none."""
    if not root.is_dir():
        raise ModelError(f"{root} is no folder; a model is a folder with inference.json and inference.pdiparams")
    numbered = [path for path in root.iterdir() if path.name.isdecimal() and path.is_dir()]
    return sorted(numbered, key=lambda path: int(path.name)) or [root]


def read(root: Path, folder: Path, *, name: str = "") -> ModelFiles:
    """One of `versions(root)`."""
    program, params = _files(folder)
    beside = _paddle_files(folder) if params is None else None
    settings = _settings(folder if (folder / SETTINGS).exists() else root)
    named = replace(settings, name=name or settings.name or root.resolve().name)
    return ModelFiles(
        folder=folder,
        program=program,
        params=params,
        original=beside,
        version="1" if folder == root else folder.name,
        settings=named,
        fingerprint=_fingerprint(folder),
    )


def _files(folder: Path) -> tuple[Path, Path | None]:
    """A Paddle model wins over an ONNX one beside it only if that is not called model.onnx."""
    onnx = sorted(folder.glob("*.onnx"))
    if (folder / "model.onnx") in onnx:
        return folder / "model.onnx", None
    if (paddle := _paddle_files(folder)) is not None:
        return paddle
    if onnx:
        return onnx[0], None
    present = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
    raise ModelError(
        f"{folder} holds no model: expected inference.json (or .pdmodel) with inference.pdiparams, or model.onnx; "
        f"found {present}"
    )


def _paddle_files(folder: Path) -> tuple[Path, Path] | None:
    for params in sorted(folder.glob(f"*{PARAMS}")):
        for ending in _PROGRAMS:
            program = params.with_suffix(ending)
            if program.exists():
                return program, params
        raise ModelError(f"{folder} has {params.name} but neither {params.stem}.json nor {params.stem}.pdmodel")
    return None


def _settings(folder: Path) -> Settings:
    path = folder / SETTINGS
    if not path.exists():
        return Settings()
    try:
        body = yaml.safe_load(path.read_text()) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ModelError(f"{path}: {cause_of(error)}") from error
    if not isinstance(body, dict):
        raise ModelError(f"{path} must be a mapping of fields")
    unknown = sorted(map(str, set(body) - set(_FIELDS)))
    if unknown:
        raise ModelError(f"{path}: unknown field {unknown[0]!r}; known are {', '.join(_FIELDS)}")
    try:
        return Settings(
            name=str(body.get("name") or ""),
            batch=_limits(body.get("batch") or {}),
            processor=str(body.get("processor") or ""),
            processing=_processing(body),
            inputs=_names(body.get("inputs")),
            outputs=_names(body.get("outputs")),
            warm_up=bool(body.get("warmUp", True)),
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: {error}") from error


def _processing(body: dict[str, Any]) -> dict[str, Any]:
    found = body.get("processing") or {}
    if not isinstance(found, dict):
        raise ValueError("processing must be a mapping, such as {task: clas, size: [224, 224]}")
    if found and body.get("processor"):
        raise ValueError("processor is code of the model, processing is the server's own: a model has one of them")
    return found


def _names(body: Any) -> dict[str, str]:
    return {str(client): str(inner) for client, inner in (body or {}).items()}


def _limits(body: dict[str, Any]) -> BatchLimits:
    unknown = sorted(map(str, set(body) - {"rows", "delayMilliseconds", "waiting"}))
    if unknown:
        raise ValueError(f"unknown field 'batch.{unknown[0]}'; known are rows, delayMilliseconds, waiting")
    usual = BatchLimits()
    rows, waiting = int(body.get("rows", usual.rows)), int(body.get("waiting", usual.waiting))
    delay = float(body.get("delayMilliseconds", 0)) / 1000
    if rows < 1 or waiting < 1 or delay < 0:
        raise ValueError("batch.rows and batch.waiting must be at least 1, batch.delayMilliseconds at least 0")
    return BatchLimits(rows=rows, delay=delay, waiting=waiting)


def _fingerprint(folder: Path) -> str:
    entries = [(entry.name, entry.stat()) for entry in os.scandir(folder) if entry.is_file()]
    return f"{folder.name}:" + ",".join(f"{name}={stat.st_size}@{stat.st_mtime_ns}" for name, stat in sorted(entries))
