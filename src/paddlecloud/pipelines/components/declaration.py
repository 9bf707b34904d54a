"""What a component is: its inputs, its outputs and the program that carries it out.

The names of inputs are those of the original YAML files, and so are the flags of their launchers: camel case in the
set of launchers, snake case in the set of operators.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

InputType = Literal["String", "Integer", "Boolean", "JsonObject", "JsonArray"]
Default = str | int | bool
Set = Literal["operator", "launcher", "suite"]


@dataclass(frozen=True)
class Input:
    name: str
    """As in the YAML, for example `Source Uri`."""
    type: InputType
    doc: str
    zh: str
    """The same in Chinese, for the docs."""
    flag: str = ""
    """Of the launcher; empty: `--` and the parameter's name."""
    default: Default | None = None
    """In the YAML. An input with neither a default nor `optional` is required."""
    optional: bool = False
    absent: Default | None = None
    """What the launcher uses where an optional input is not given."""

    @property
    def parameter(self) -> str:
        return parameter_name(self.name)

    @property
    def option(self) -> str:
        return self.flag or f"--{self.parameter}"

    @property
    def required(self) -> bool:
        return self.default is None and not self.optional


@dataclass(frozen=True)
class Output:
    """A value that the launcher writes to a file which the pipeline's engine reads."""

    name: str
    type: Literal["String", "JsonObject"]
    doc: str
    zh: str
    flag: str = ""

    @property
    def parameter(self) -> str:
        return parameter_name(self.name)

    @property
    def option(self) -> str:
        return self.flag or f"--{self.parameter}_path"


@dataclass(frozen=True)
class Component:
    """`file` is the name of its YAML file, `program` of its launcher."""

    set: Set
    file: str
    name: str
    doc: str
    zh: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...] = ()
    program: str = ""
    image: str = ""
    """Empty: the launchers' own. Only `converter` needs the programs of Paddle Serving."""

    @property
    def launcher(self) -> str:
        return self.program or self.file


def parameter_name(name: str) -> str:
    """The name of an argument in Python, as both generations of kfp make it of an input's name."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
