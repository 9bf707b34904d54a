"""Flags of a launcher, parsed by what its component declares."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from paddlecloud.pipelines.components.declaration import Component, Default, InputType

_IF_PRESENT = re.compile(
    r"""\{"IfPresent": \{"InputName": "[^"]*", "Then": \["(?P<flag>[^"]*)", "(?P<value>.*)"\]\}\}""", re.DOTALL
)
_NOT_GIVEN = re.compile(r"\{\{\$\.inputs\.parameters\['[^']*'\]\}\}")
TRUE, FALSE = ("true", "1", "yes"), ("false", "0", "no", "")


class Values:
    """Arguments by the names of their parameters, each read as what its input declares."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        """Empty where an optional text was not given."""
        return cast(str, self._values[name]) or ""

    def number(self, name: str) -> int:
        return cast(int, self._values[name])

    def given(self, name: str) -> bool:
        return self._values[name] is not None

    def switch(self, name: str) -> bool:
        return bool(self._values[name])

    def json(self, name: str) -> Any:
        """None where it was not given."""
        return self._values[name]


def parse(component: Component, arguments: Sequence[str]) -> tuple[Values, dict[str, str]]:
    """The values of the inputs, and by the names of the outputs the files they go to. Exits with 2 for bad flags."""
    parser = argparse.ArgumentParser(prog=component.launcher, description=component.doc, allow_abbrev=False)
    for one in component.inputs:
        default = one.default if one.default is not None else one.absent
        parser.add_argument(
            one.option,
            dest=f"in_{one.parameter}",
            type=READERS[one.type],
            default=default,
            required=one.required,
            help=_help(one.doc, default),
            metavar=one.type.upper(),
        )
    for output in component.outputs:
        parser.add_argument(output.option, dest=f"out_{output.parameter}", metavar="FILE", help=output.doc)
    found = vars(parser.parse_args(list(resolved(arguments))))
    values = {one.parameter: found[f"in_{one.parameter}"] for one in component.inputs}
    files = {one.parameter: found[f"out_{one.parameter}"] for one in component.outputs}
    return Values(values), {name: file for name, file in files.items() if file}


def resolved(arguments: Sequence[str]) -> Iterator[str]:
    """Flags of optional inputs as they are meant. kfp 2 compiles them to `IfPresent`, which the backend of Kubeflow
    Pipelines does not know (seen in 2.14): a program gets that text, with the bare value in its middle, or with the
    placeholder where the input is not given."""
    for each in arguments:
        if (found := _IF_PRESENT.fullmatch(each)) is None:
            yield each
        elif not _NOT_GIVEN.fullmatch(found["value"]):
            yield from (found["flag"], found["value"])


def _help(doc: str, default: Default | None) -> str:
    shown = doc if default is None else f"{doc} Default: {default}"
    return shown.replace("%", "%%")


def boolean(text: str) -> bool:
    """Python and JSON write it differently, and so do the two generations of kfp."""
    lowered = text.strip().lower()
    if lowered not in (*TRUE, *FALSE):
        raise argparse.ArgumentTypeError(f"{text!r} is not true or false")
    return lowered in TRUE


def _integer(text: str) -> int:
    """kfp 2 writes a number that was computed as 1.0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.5
    if not number.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(number)


def _json(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise argparse.ArgumentTypeError(f"it is not JSON: {error}") from None
        if not isinstance(value, kind):
            wanted = "an object" if kind is dict else "a list"
            raise argparse.ArgumentTypeError(f"it is JSON, but not {wanted}")
        return value

    return read


READERS: dict[InputType, Callable[[str], Any]] = {
    "String": str,
    "Integer": _integer,
    "Boolean": boolean,
    "JsonObject": _json(dict),
    "JsonArray": _json(list),
}
