"""Every YAML of the manual passes a strict server-side dry run of a real API server that has our kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from harness import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operators")]

MANUAL = Path(__file__).parents[2] / "examples" / "manual"
FILES = sorted(path.name for path in MANUAL.glob("*.yaml") if "apiVersion" in path.read_text())


@pytest.mark.parametrize("name", FILES)
def test_yaml_passes_a_strict_dry_run(kubectl: Kubectl, name: str) -> None:
    kinds = {document["kind"] for document in yaml.safe_load_all((MANUAL / name).read_text()) if document}
    for document in yaml.safe_load_all((MANUAL / name).read_text()):
        document["metadata"].pop("namespace", None)  # the test's own exists
        text = yaml.safe_dump(document)
        kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", input=text)
    assert kinds
