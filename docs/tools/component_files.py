"""Files of pipeline components, written from their declarations: component YAML, typed functions, tables of the docs.

The YAML is in the form of kfp 1, which both generations load. `make rendered` writes all of it anew; a test fails while
any of it differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from paddlecloud.pipelines.components.catalogue import COMPONENTS, FOLDER, path
from paddlecloud.pipelines.components.declaration import Component, Default, Input, Output
from paddlecloud.pipelines.components.image import IMAGE
from paddlecloud.pipelines.components.launcher_set import SAMPLESET, VISUALDL
from paddlecloud.pipelines.components.operator_set import OPERATOR_SET
from paddlecloud.pipelines.components.suite_set import SUITE_SET

COMMAND = ("python", "-m", "paddlecloud.pipelines.launchers")
FUNCTIONS = (*OPERATOR_SET, SAMPLESET, VISUALDL, *SUITE_SET)
"""Components that `paddlecloud.pipelines` offers as functions."""
PYTHON_TYPES = {
    "String": "str",
    "Integer": "int",
    "Boolean": "bool",
    "JsonObject": "dict[str, Any]",
    "JsonArray": "list[Any]",
}

CONVERT = """\
mount_path=$0 model_name=$1 dirname=$2 pdmodel=$3 pdiparams=$4
folder="$mount_path/$model_name"
rm -rf "$folder"
mkdir -p "$folder"
case "$dirname" in /*) ;; *) dirname="$mount_path/$dirname" ;; esac
python3 -m paddle_serving_client.convert --dirname "$dirname" \
--model_filename "$pdmodel" --params_filename "$pdiparams" \
--serving_server "$folder/server" --serving_client "$folder/client"
tar czf "$folder.tar.gz.part" -C "$mount_path" "$model_name"
mv "$folder.tar.gz.part" "$folder.tar.gz"
"""
"""It runs in the image of Paddle Serving, which has none of this project's programs."""

HEADER = "# Made from paddlecloud.pipelines.components; changes here are lost.\n"


def component_yaml(component: Component) -> str:
    spec: dict[str, Any] = {"name": component.name, "description": component.doc}
    spec["inputs"] = [_input(one) for one in component.inputs]
    if component.outputs:
        spec["outputs"] = [{"name": one.name, "type": one.type, "description": one.doc} for one in component.outputs]
    spec["implementation"] = {"container": _container(component)}
    return HEADER + yaml.safe_dump(spec, sort_keys=False, allow_unicode=True, width=120)


def _input(one: Input) -> dict[str, Any]:
    written: dict[str, Any] = {"name": one.name, "type": one.type, "description": one.doc}
    if one.default is not None:
        written["default"] = text(one.default)
    if one.optional:
        written["optional"] = True
    return written


def text(value: Default) -> str:
    """As a default stands in YAML: kfp keeps all of them as texts, booleans as Python writes them."""
    return str(value)


def _container(component: Component) -> dict[str, Any]:
    if component.image:
        values = [{"inputValue": one.name} for one in component.inputs]
        return {"image": component.image, "command": ["sh", "-exc", CONVERT], "args": values}
    return {"image": IMAGE, "command": [*COMMAND, component.launcher], "args": list(_arguments(component))}


def _arguments(component: Component) -> Iterator[Any]:
    for one in component.inputs:
        pair = [one.option, {"inputValue": one.name}]
        if one.optional:
            yield {"if": {"cond": {"isPresent": one.name}, "then": pair}}
        else:
            yield from pair
    for output in component.outputs:
        yield from (output.option, {"outputPath": output.name})


def functions_source() -> str:
    """The module `paddlecloud.pipelines.functions`."""
    return FUNCTIONS_HEAD + "".join(_function(one) for one in FUNCTIONS)


FUNCTIONS_HEAD = '''\
"""Components as typed functions, for pipelines of kfp 1 and kfp 2. Made from paddlecloud.pipelines.components.

Each returns what the installed kfp makes of the component: a task of the pipeline that is being built.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.pipelines.loading import Channel, task
'''


def _function(component: Component) -> str:
    ordered = sorted(component.inputs, key=lambda one: not one.required)
    parameters = "".join(f"    {_parameter(one)},\n" for one in ordered)
    docs = "".join(f"        {one.parameter}: {one.doc}\n" for one in ordered)
    outputs = ", ".join(one.parameter for one in component.outputs)
    given = "".join(f'            "{one.parameter}": {one.parameter},\n' for one in ordered)
    return (
        f"\n\ndef {component.file}(\n    *,\n{parameters}) -> Any:\n"
        f'    """{component.doc}\n\n    Args:\n{docs}\n    Outputs: {outputs}.\n    """\n'
        f'    return task(\n        "{component.set}/{component.file}",\n        {{\n{given}        }},\n    )\n'
    )


def _parameter(one: Input) -> str:
    kind = f"{one.parameter}: {PYTHON_TYPES[one.type]} | Channel"
    if one.required:
        return kind
    return f"{kind} = {one.default!r}".replace("'", '"') if one.default is not None else f"{kind} | None = None"


def table(component: Component, *, chinese: bool = False) -> str:
    """Of the inputs and outputs of a component, for the docs."""
    head = "| 参数 | 类型 | 默认值 | 说明 |" if chinese else "| Input | Type | Default | |"
    lines = [head, "|---|---|---|---|"]
    required, output = ("必填", "输出") if chinese else ("required", "output")
    rows: list[tuple[Input | Output, str]] = [(one, _shown_default(one, required)) for one in component.inputs]
    given: list[tuple[Input | Output, str]] = [(one, output) for one in component.outputs]
    lines += [_row(one.parameter, one.type, shown, one.zh if chinese else one.doc) for one, shown in (*rows, *given)]
    return "\n".join(lines)


def _row(*cells: str) -> str:
    return f"| `{cells[0]}` | {' | '.join(cells[1:])} |"


def _shown_default(one: Input, required: str) -> str:
    if one.required:
        return required
    value = one.default if one.default is not None else one.absent
    return "–" if value is None else f"`{text(value)}`"


def pages_tables(components: Iterable[Component] = COMPONENTS, *, chinese: bool = False) -> str:
    """The whole generated part of a page of the docs."""
    parts = []
    for one in components:
        doc = one.zh if chinese else one.doc
        parts.append(f"### `{one.set}/{one.file}.yaml`\n\n{doc}\n\n{table(one, chinese=chinese)}\n")
    return "\n".join(parts)


BEGIN, END = "<!-- components: begin -->", "<!-- components: end -->"


def with_tables(page: str, *, chinese: bool) -> str:
    """A page of the docs with its generated part made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{pages_tables(chinese=chinese)}\n{END}{after}"


def files(root: Path) -> dict[Path, str]:
    """Every file that is made from the declarations in a checkout, and its content."""
    made = {path(one): component_yaml(one) for one in COMPONENTS}
    made[FOLDER.parent / "functions.py"] = functions_source()
    for name, chinese in (("pipelines.md", False), ("pipelines.zh.md", True)):
        page = root / "docs" / name
        made[page] = with_tables(page.read_text(encoding="utf-8"), chinese=chinese)
    return made


if __name__ == "__main__":
    for target, content in files(Path(__file__).parents[2]).items():
        target.parent.mkdir(exist_ok=True)
        target.write_text(content, encoding="utf-8")
