"""A choice of Argo's examples on the embedded platform: they end as on real Argo. `make test-argo` runs all."""

from __future__ import annotations

import pytest

from harness import need
from tools import argo, go

from . import catalogue, platforms, record, runner
from .comparison import Result, compare

CHOICE = (
    "arguments-parameters", "artifact-passing", "coinflip", "conditionals", "conditionals-complex", "dag-diamond",
    "dag-enhanced-depends", "dag-multiroot", "dag-targets", "exit-handlers", "global-parameters-from-configmap",
    "hello-world", "loops", "loops-dag", "loops-sequence", "output-parameter", "parameter-aggregation",
    "retry-on-error", "scripts-python", "skipped-output-defaults/expression-fallback", "status-reference", "steps",
    "steps-inline-workflow", "workflow-template/dag", "workflow-template/steps",
)  # fmt: skip
"""Of `examples`; each takes moments."""


@pytest.mark.timeout(300)
def test_examples_end_as_on_real_argo() -> None:
    need("go", have=go.find() is not None, hint="Go fetches Argo's module, which has its examples")
    real = record.load(record.CLUSTER)
    cases = [
        case for case in catalogue.cases(argo.files()) if case.name in {f"examples/{name}.yaml" for name in CHOICE}
    ]
    assert len(cases) == len(CHOICE)
    with platforms.embedded() as platform:
        ended = [(case.name, verdict) for case, verdict, _ in runner.run(platform, cases)]
    found = [(name, compare(real[name], verdict, name)) for name, verdict in ended]
    assert [f"{name}: {each.difference}" for name, each in found if each.result is not Result.SAME] == []
