"""Files of users are compiled in a process of their own, by an interpreter that has kfp; here a kfp of a few lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecloud.sdk import compiling

COMPILER = """
class Compiler:
    def compile(self, function, target):
        with open(target, "w") as file:
            file.write(function())
"""
PIPELINE = """
import helper
def greet():
    return helper.WORD
greet._component_human_name = "greet"
"""
Compile = Callable[[Path], bytes]


@pytest.fixture
def kfp(tmp_path: Path) -> Path:
    package = tmp_path / "site" / "kfp"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "compiler.py").write_text(COMPILER)
    return package


@pytest.fixture
def compiled(kfp: Path) -> Compile:
    def run(file: Path) -> bytes:
        return compiling.compile_file(file, python=sys.executable, environ={"PYTHONPATH": str(kfp.parent)})

    return run


def test_the_bytecode_of_kfp_is_kept_and_that_of_the_users_files_is_not(
    compiled: Compile, kfp: Path, tmp_path: Path
) -> None:
    """Without it Python reads a thousand files of kfp anew each time. A file of the user that was changed within a
    second, to one of the same length, would be taken from it."""
    file, helper = tmp_path / "pipeline.py", tmp_path / "helper.py"
    file.write_text(PIPELINE)
    for word in ("first", "other"):
        helper.write_text(f"WORD = '{word}'\n")
        assert compiled(file) == word.encode()
    assert list(kfp.glob("__pycache__/compiler.*.pyc"))
    assert not (tmp_path / "__pycache__").exists()


@pytest.mark.parametrize(
    ("version", "line", "generation"),
    [
        ("2.17.0", "kfp.dsl.VolumeOp", 1),
        ("2.17.0", "from kfp.dsl import ContainerOp", 1),
        ("1.8.22", "import kfp.kubernetes", 2),
    ],
)
def test_a_file_for_the_other_generation_of_kfp_is_said_to_be_one(
    compiled: Compile, kfp: Path, tmp_path: Path, version: str, line: str, generation: int
) -> None:
    (kfp / "__init__.py").write_text(f"__version__ = {version!r}\n")
    (kfp / "dsl.py").touch()
    file = tmp_path / "pipeline.py"
    file.write_text(f"import kfp.dsl\n{line}\n")
    said = f"it seems to be written for kfp {generation}, and this is kfp {version}$"
    with pytest.raises(compiling.OtherGeneration, match=said) as refused:
        compiled(file)
    assert (refused.value.wanted, "pipeline.py, line 2: " in str(refused.value)) == (generation, True)
