"""What a platform has from its start, so that published YAML applies as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from paddlecloud.platform import bootstrap

EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.yaml"))


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_examples_finds_its_namespaces_on_a_fresh_platform(name: str, tmp_path: Path) -> None:
    documents = list(yaml.safe_load_all((EXAMPLES / name).read_text()))
    written = [document for document in documents if isinstance(document, dict) and "metadata" in document]
    made = [obj for obj in (*bootstrap.objects(tmp_path), *written) if obj.get("kind") == "Namespace"]
    present = {"default", "kube-system", *(obj["metadata"]["name"] for obj in made)}
    assert {obj["metadata"].get("namespace", "default") for obj in written} <= present
