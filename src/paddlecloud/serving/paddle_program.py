"""What a Paddle program declares of its inputs and outputs. Its predictor gives only their names.

Two forms: `.json` (Paddle 3) is read as for the ModelHub; `.pdmodel` (Paddle 2) through Paddle's own reader. A form
that cannot be read declares nothing: then the model itself judges what it is given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from paddlecloud.modelhub import signature
from paddlecloud.serving.errors import ModelError
from paddlecloud.serving.tensors import DATATYPES, NAMES, TensorSpec


def declared(program: Path) -> dict[str, TensorSpec]:
    specs = _of_json(program) if program.suffix == ".json" else _of_pdmodel(program)
    return {spec.name: spec for spec in specs}


def check(program: Path) -> None:
    """Paddle ends the process over a damaged program; better to look first."""
    if program.suffix == ".json":
        try:
            content = json.loads(program.read_bytes())
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{program} is damaged: {error}") from error
        if not isinstance(content, dict) or "program" not in content:
            raise ModelError(f"{program} is JSON, but no Paddle program")
    elif program.stat().st_size == 0:
        raise ModelError(f"{program} is empty")


def _of_json(program: Path) -> Iterator[TensorSpec]:
    try:
        found = signature.of_program(program.read_bytes())
    except signature.UNREADABLE:
        return
    for one in (*(found.inputs or ()), *(found.outputs or ())):
        if one.datatype in DATATYPES:
            yield TensorSpec(one.name, one.datatype, tuple(one.shape or ()))


def _of_pdmodel(program: Path) -> Iterator[TensorSpec]:
    try:
        from paddle.base import core

        description = core.ProgramDesc(program.read_bytes())  # a block does not keep its program alive
        block = description.block(0)
        names: set[str] = set()
        for operation in (block.op(number) for number in range(block.op_size())):
            if operation.type() == "feed":
                names.update(operation.output_arg_names())
            elif operation.type() == "fetch":
                names.update(operation.input_arg_names())
        for variable in block.all_vars():
            datatype = NAMES.get(str(variable.dtype()).rpartition(".")[2].lower())
            if variable.name() in names and datatype:
                yield TensorSpec(variable.name(), datatype, tuple(variable.shape()))
    except Exception:
        return  # written by an older Paddle in another way, or its reader is gone
