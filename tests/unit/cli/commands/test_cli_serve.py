"""`pdc serve`: what a word that is no folder means, by the platform it is said to."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.platform import endpoint
from unit.cli.conftest import Pdc
from unit.cli.stub import Stub

OURS = "v1.34.0-paddlecloud.0.1.0"


@pytest.mark.parametrize(
    ("version", "store", "model", "code"),
    [
        (OURS, "", "digits", 3),
        (OURS, "", "digits:v3", 3),
        (OURS, "http://models.example", "digits:v3", 0),
        ("v1.34.0", "", "digits:v3", 0),
        (OURS, "http://models.example", "digits", 0),
        ("v1.34.0", "", "digits", 0),
    ],
)
def test_a_word_is_a_model_of_the_store_unless_the_platform_has_none(
    stub: Stub, pdc: Pdc, home: Path, monkeypatch: pytest.MonkeyPatch, version: str, store: str, model: str, code: int
) -> None:
    stub.version = version
    data = home / ".paddlecloud"
    data.mkdir()
    monkeypatch.setenv("PADDLECLOUD_MODEL_ENDPOINT", store)
    endpoint.announce(data, port=1, nodes=1)
    monkeypatch.delenv("PADDLECLOUD_MODEL_ENDPOINT")
    monkeypatch.chdir(home)
    result = pdc("serve", model, "--dry-run")
    assert result.code == code, result.err
    refusals = {
        "digits": "there is no folder digits here: nor a model digits in namespace default (pdc model ls)",
        "digits:v3": "there is no model digits in namespace default, nor a model store",
    }
    assert (refusals[model] in result.err) == (code == 3)
