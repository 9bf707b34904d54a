"""Compile every pipeline beside this file with the kfp that is installed: `python compile_golden.py [FOLDER]`."""

import importlib.util
import sys
from pathlib import Path

from kfp import compiler

HERE = Path(__file__).parent


def compile_all(folder: Path) -> None:
    for source in sorted(HERE.glob("*.py")):
        if source.name == Path(__file__).name:
            continue
        spec = importlib.util.spec_from_file_location(source.stem, source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        compiler.Compiler().compile(module.pipeline, str(folder / f"{source.stem}.yaml"))


if __name__ == "__main__":
    compile_all(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
