"""ParallelFor over constants, inputs and outputs, nested, with fields, collected parameters and artifacts."""

from typing import List

from kfp import dsl

python = dsl.component(base_image="paddlecloud/kfp:2", install_kfp_package=False)


@python
def numbers(n: int) -> List[int]:
    return list(range(1, n + 1))


@python
def double(x: int) -> int:
    return 2 * x


@python
def save(x: int, name: str, data: dsl.Output[dsl.Dataset]):
    with open(data.path, "w") as file:
        file.write(f"{name}{x}")
    data.metadata["x"] = x


@python
def total(values: List[int]) -> int:
    return sum(values)


@python
def flatten(values: List[List[int]]) -> int:
    return sum(sum(row) for row in values)


@python
def join(files: dsl.Input[List[dsl.Dataset]]) -> str:
    return "+".join(f"{open(file.path).read()}:{file.metadata['x']}" for file in files or [])


@python
def note(word: str) -> str:
    return word


@dsl.pipeline(name="loops")
def pipeline(n: int = 3, given: List[int] = [7, 8]) -> str:
    made = numbers(n=n)
    with dsl.ParallelFor(items=made.output, parallelism=2) as x:
        doubled = double(x=x)
        saved = save(x=doubled.output, name="f")
    summed = total(values=dsl.Collected(doubled.output))
    joined = join(files=dsl.Collected(saved.outputs["data"]))
    with dsl.ParallelFor(items=[{"word": "a", "tag": "1"}, {"word": "b", "tag": "2"}]) as item:
        save(x=summed.output, name=item.word)
        note(word=item.tag)
    with dsl.ParallelFor(items=given) as outer:
        with dsl.ParallelFor(items=[10, 20]) as inner:
            product = double(x=inner)
            double(x=outer)
    flatten(values=dsl.Collected(product.output))
    double(x=summed.output)
    return joined.output
