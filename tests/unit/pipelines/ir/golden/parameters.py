"""Typed parameters into container components: placeholders, If present, Concat."""

from kfp import dsl
from kfp.dsl import ConcatPlaceholder, ContainerSpec, IfPresentPlaceholder, OutputPath


@dsl.container_component
def echo(message: str, out: OutputPath(str)):
    return ContainerSpec(
        image="busybox:1.36",
        command=["sh", "-c", 'mkdir -p "$(dirname "$1")"; printf %s "$0" | tee "$1"'],
        args=[message, out],
    )


@dsl.container_component
def show(
    text: str, number: int, ratio: float, flag: bool, items: list, table: dict, out: OutputPath(str), suffix: str = None
):
    return ContainerSpec(
        image="busybox:1.36",
        command=["sh", "-c", 'mkdir -p "$(dirname "$0")"; printf "%s\\n" "$@" > "$0"', out],
        args=[
            ConcatPlaceholder(["text=", text]),
            number,
            ratio,
            flag,
            items,
            table,
            IfPresentPlaceholder(input_name="suffix", then=["--suffix", suffix], else_=["--none"]),
        ],
    )


@dsl.pipeline(name="parameters")
def pipeline(message: str = "hello", number: int = 3, ratio: float = 0.5, flag: bool = True) -> str:
    first = echo(message=message)
    shown = show(
        text=first.outputs["out"],
        number=number,
        ratio=ratio,
        flag=flag,
        items=[1, "two", {"three": 3}],
        table={"a": [1, 2]},
    )
    show(
        text=f"{message} and {first.outputs['out']}", number=1, ratio=2.0, flag=False, items=[], table={}, suffix="end"
    )
    return shown.outputs["out"]
