"""What is there of the outputs of a program is reported, and what is missing is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.local.workflow.executor import saving


@pytest.mark.parametrize(("succeeded", "is_error"), [(True, True), (False, False)])
def test_given_missing_outputs_then_the_others_are_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, succeeded: bool, is_error: bool
) -> None:
    monkeypatch.setattr(saving, "OUTPUTS", str(tmp_path / "outputs"))
    (tmp_path / "outputs").mkdir()
    (tmp_path / "there").write_text("text\n")
    there, missing = str(tmp_path / "there"), str(tmp_path / "missing")
    orders = {
        "parameters": {"lost": {"path": missing}, "made": {"path": there}},
        "artifacts": [{"name": "none", "path": missing}, {"name": "file", "path": there}],
    }
    report = saving.save(orders, succeeded=succeeded)
    assert report["parameters"] == {"made": "text"}
    assert [each["name"] for each in report["artifacts"]] == ["file"]
    assert report.get("withoutOutputs", False) is is_error
    if is_error:
        assert "output parameter lost" in report["error"]
        assert "output artifact none" in report["error"]


@pytest.mark.parametrize("succeeded", [True, False])
def test_an_optional_artifact_is_missed_aloud_only_where_the_program_succeeded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], succeeded: bool
) -> None:
    orders = {"artifacts": [{"name": "none", "path": str(tmp_path / "missing"), "optional": True}]}
    assert saving.save(orders, succeeded=succeeded) == {}
    assert ("it is left out" in capsys.readouterr().err) is succeeded
