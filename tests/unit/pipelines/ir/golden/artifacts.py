"""Artifacts with metadata through container components."""

from kfp import dsl


@dsl.container_component
def make(message: str, data: dsl.Output[dsl.Dataset]):
    return dsl.ContainerSpec(
        image="busybox:1.36",
        command=["sh", "-c", 'mkdir -p "$(dirname "$1")"; printf %s "$0" > "$1"'],
        args=[message, data.path],
    )


@dsl.container_component
def use(data: dsl.Input[dsl.Dataset], out: dsl.OutputPath(str)):
    return dsl.ContainerSpec(
        image="busybox:1.36",
        command=["sh", "-c", 'mkdir -p "$(dirname "$2")"; echo "uri $1"; cat "$0" > "$2"'],
        args=[data.path, data.uri, out],
    )


@dsl.pipeline(name="artifacts")
def pipeline(message: str = "hello") -> dsl.Dataset:
    made = make(message=message)
    use(data=made.outputs["data"])
    return made.outputs["data"]
