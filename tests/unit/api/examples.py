"""The examples as tests see them: every YAML object under examples/, and the module that understands its kind."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import yaml

from paddlecloud.api import kubeflow, paddlejob, paddleservice, podgroup, samplejob, sampleset

ROOT = Path(__file__).parents[3] / "examples"
MODULES: dict[tuple[str, str], ModuleType] = {
    ("batch.paddlepaddle.org/v1", "PaddleJob"): paddlejob,
    ("batch.paddlepaddle.org/v1alpha1", "SampleSet"): sampleset,
    ("batch.paddlepaddle.org/v1alpha1", "SampleJob"): samplejob,
    ("serving.paddlepaddle.org/v1", "PaddleService"): paddleservice,
    ("elasticserving.paddlepaddle.org/v1", "PaddleService"): paddleservice,
    ("kubeflow.org/v1", "PaddleJob"): kubeflow,
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): podgroup,
}


class Example(NamedTuple):
    path: str
    object: dict[str, Any]

    @property
    def module(self) -> ModuleType | None:
        """None for kinds of Kubernetes itself."""
        return MODULES.get((self.object["apiVersion"], self.object["kind"]))

    def __str__(self) -> str:
        return f"{self.path}:{self.object['kind']}/{self.object['metadata']['name']}"


def documents(path: Path) -> list[Any]:
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def all_examples() -> list[Example]:
    """Every Kubernetes object; files that hold something else (configuration of training suites) are left out."""
    return [
        Example(path.relative_to(ROOT).as_posix(), document)
        for path in sorted(ROOT.rglob("*.yaml"))
        for document in documents(path)
        if isinstance(document, dict) and "apiVersion" in document
    ]


OURS = [example for example in all_examples() if example.module]
