"""What is taken for a model, and what is said of folders that hold none."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.serving import model_folder
from paddlecloud.serving.errors import ModelError


def folder(root: Path, *files: str) -> Path:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}" if name.endswith((".json", ".yaml")) else "x")
    root.mkdir(exist_ok=True)
    return root


@pytest.mark.parametrize(
    ("files", "program", "version"),
    [
        (["inference.json", "inference.pdiparams"], "inference.json", "1"),
        (["inference.pdmodel", "inference.pdiparams"], "inference.pdmodel", "1"),
        (["rec.pdmodel", "rec.pdiparams", "notes.json"], "rec.pdmodel", "1"),
        (["model.onnx"], "model.onnx", "1"),
        (["net.onnx"], "net.onnx", "1"),
        (["inference.json", "inference.pdiparams", "model.onnx"], "model.onnx", "1"),
        (["inference.json", "inference.pdiparams", "net.onnx"], "inference.json", "1"),
        (["1/model.onnx", "2/model.onnx", "10/model.onnx"], "10/model.onnx", "10"),
    ],
)
def test_the_files_that_make_up_a_model(tmp_path: Path, files: list[str], program: str, version: str) -> None:
    found = model_folder.find(folder(tmp_path / "digits", *files))
    assert found.program == tmp_path / "digits" / program
    assert (found.version, found.settings.name) == (version, "digits")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "holds no model: expected inference.json .* found nothing"),
        (["readme.md"], "found readme.md"),
        (["inference.pdiparams"], "neither inference.json nor inference.pdmodel"),
        (["1/inference.json"], "holds no model"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, files: list[str], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        model_folder.find(folder(tmp_path / "m", *files))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is no folder"):
        model_folder.find(tmp_path / "absent")


def test_settings_beside_the_model(tmp_path: Path) -> None:
    root = folder(tmp_path / "m", "model.onnx")
    (root / "serving.yaml").write_text(
        "name: digits\nbatch: {rows: 8, delayMilliseconds: 5}\nprocessor: p.py:P\ninputs: {image: x}\nwarmUp: false\n"
    )
    settings = model_folder.find(root).settings
    assert (settings.name, settings.batch.rows, settings.batch.delay) == ("digits", 8, 0.005)
    assert (settings.processor, settings.inputs, settings.warm_up) == ("p.py:P", {"image": "x"}, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nme: x", "unknown field 'nme'; known are name"),
        ("[1]", "must be a mapping"),
        ("batch: {rows: 0}", "must be at least 1"),
        ("batch: {row: 2}", "unknown field 'batch.row'"),
        ("batch: {rows: many}", "invalid literal"),
        ("{", "serving.yaml"),
    ],
)
def test_settings_that_make_no_sense(tmp_path: Path, text: str, message: str) -> None:
    root = folder(tmp_path / "m", "model.onnx")
    (root / "serving.yaml").write_text(text)
    with pytest.raises(ModelError, match=message):
        model_folder.find(root)
