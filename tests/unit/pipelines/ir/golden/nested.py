"""A pipeline inside a pipeline inside a pipeline, with outputs and an importer."""

from kfp import dsl

python = dsl.component(base_image="paddlecloud/kfp:2", install_kfp_package=False)


@python
def write(text: str, data: dsl.Output[dsl.Dataset]) -> int:
    with open(data.path, "w") as file:
        file.write(text)
    data.metadata["length"] = len(text)
    return len(text)


@python
def length(data: dsl.Input[dsl.Dataset]) -> int:
    return data.metadata["length"]


@python
def imported(model: dsl.Input[dsl.Model]) -> str:
    return f"{model.uri} {model.metadata['from']}"


@dsl.pipeline
def inner(text: str) -> dsl.Dataset:
    return write(text=text).outputs["data"]


@dsl.pipeline
def middle(text: str = "inside") -> int:
    return length(data=inner(text=text).output).output


@dsl.pipeline(name="nested")
def pipeline(text: str = "four", uri: str = "s3://models/one") -> int:
    model = dsl.importer(artifact_uri=uri, artifact_class=dsl.Model, reimport=False, metadata={"from": text})
    imported(model=model.output)
    fixed = dsl.importer(artifact_uri="s3://models/two", artifact_class=dsl.Model, metadata={"from": "two"})
    imported(model=fixed.output)
    middle()
    return middle(text=text).output
