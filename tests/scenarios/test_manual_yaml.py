"""Every object of the manual, as it stands but for its namespace: a strict server takes it and says so."""

from __future__ import annotations

import json

import pytest

from harness import Kubectl
from unit.api.examples import ROOT, documents

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operators")]

MANUAL = ROOT / "manual"
FILES = sorted(path.name for path in MANUAL.glob("*.yaml") if documents(path))


@pytest.mark.parametrize("name", FILES)
def test_a_strict_server_takes_what_the_manual_prints(kubectl: Kubectl, name: str) -> None:
    for obj in documents(MANUAL / name):
        obj["metadata"].pop("namespace", None)
        group = obj["apiVersion"].rpartition("/")[0]
        kind = ".".join(filter(None, (obj["kind"].lower(), group)))
        said = kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", input=json.dumps(obj)).stdout
        assert said.startswith(f"{kind}/{obj['metadata']['name']} "), said
        assert said.split()[1] in ("created", "configured", "unchanged"), "the last two where it is there already"
