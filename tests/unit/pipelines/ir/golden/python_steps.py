"""Lightweight Python components: typed values, artifacts with metadata, metrics."""

from typing import List, NamedTuple

from kfp import dsl

python = dsl.component(base_image="paddlecloud/kfp:2", install_kfp_package=False)


@python
def add(a: float, b: float = 2.0) -> float:
    return a + b


@python
def several(n: int) -> NamedTuple("Outputs", [("words", List[str]), ("table", dict), ("yes", bool)]):
    return (["w"] * n, {"n": n}, n > 1)


@python
def fit(
    x: float, words: List[str], table: dict, yes: bool, model: dsl.Output[dsl.Model], metrics: dsl.Output[dsl.Metrics]
):
    with open(model.path, "w") as file:
        file.write(str(x))
    model.metadata["words"] = words
    model.metadata["table"] = table
    metrics.log_metric("x", x)
    metrics.log_metric("yes", yes)


@python
def judge(first: dsl.Input[dsl.Model], second: dsl.Input[dsl.Model], best: dsl.Output[dsl.Model]) -> str:
    texts = [open(model.path).read() for model in (first, second)]
    with open(best.path, "w") as file:
        file.write(max(texts, key=float))
    best.metadata["of"] = [first.metadata["words"], second.metadata["table"]]
    return ",".join(texts)


@dsl.pipeline(name="python-steps")
def pipeline(a: float = 1.0, n: int = 2) -> str:
    total = add(a=a)
    facts = several(n=n)
    given = dict(words=facts.outputs["words"], table=facts.outputs["table"], yes=facts.outputs["yes"])
    first = fit(x=total.output, **given)
    second = fit(x=10.0, **given)
    verdict = judge(first=first.outputs["model"], second=second.outputs["model"])
    return verdict.outputs["Output"]
