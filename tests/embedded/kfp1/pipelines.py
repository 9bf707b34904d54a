"""The pipelines of which this folder has what kfp 1.8.22 makes: `python pipelines.py` with that kfp installed."""

from pathlib import Path

import kfp
from kfp import dsl
from kfp.components import InputPath, OutputPath, func_to_container_op


@func_to_container_op
def make(text: str, made_path: OutputPath(str)):
    with open(made_path, "w") as file:
        file.write(text * 3)


@func_to_container_op
def count(data_path: InputPath(str)) -> int:
    with open(data_path) as file:
        return len(file.read())


@dsl.pipeline(name="files")
def files(text: str = "abc"):
    counted = count(make(text).output)
    dsl.ContainerOp(
        name="show",
        image="busybox",
        command=["sh", "-c"],
        arguments=["echo $0 > /tmp/out.txt", counted.output],
        file_outputs={"out": "/tmp/out.txt"},
    )


@dsl.pipeline(name="volume")
def volume(size: str = "1Gi"):
    claim = dsl.VolumeOp(name="pvc", resource_name="mypvc", size=size, modes=dsl.VOLUME_MODE_RWO)
    write = dsl.ContainerOp(
        name="write",
        image="busybox",
        command=["sh", "-c"],
        arguments=["echo hi > /data/f"],
        pvolumes={"/data": claim.volume},
    )
    dsl.ContainerOp(
        name="read",
        image="busybox",
        command=["sh", "-c"],
        arguments=["cat /data/f | tee /tmp/o"],
        pvolumes={"/data": write.pvolume},
        file_outputs={"o": "/tmp/o"},
    )


@dsl.pipeline(name="resource")
def resource(word: str = "hello"):
    container = {"name": "a", "image": "busybox", "command": ["echo", str(word)]}
    job = dsl.ResourceOp(
        name="job",
        k8s_resource={
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"generateName": "kfp-"},
            "spec": {"backoffLimit": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
        },
        action="create",
        success_condition="status.succeeded > 0",
        failure_condition="status.failed > 1",
        attribute_outputs={"name": "{.metadata.name}"},
    )
    dsl.ContainerOp(
        name="after",
        image="busybox",
        command=["sh", "-c"],
        arguments=["echo $0 | tee /tmp/o", job.outputs["name"]],
        file_outputs={"o": "/tmp/o"},
    )


@func_to_container_op
def flip() -> str:
    return "heads"


@dsl.pipeline(name="conditions")
def conditions():
    result = flip()
    with dsl.Condition(result.output == "heads"):
        make("yes")
    with dsl.Condition(result.output == "tails"):
        make("no")
    with dsl.ParallelFor(["a", "b"]) as item:
        make(item)


if __name__ == "__main__":
    for pipeline in (files, volume, resource, conditions):
        name = pipeline._component_human_name
        kfp.compiler.Compiler().compile(pipeline, str(Path(__file__).with_name(f"{name}.yaml")))
