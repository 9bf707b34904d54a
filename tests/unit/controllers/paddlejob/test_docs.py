"""Every field of the kind is explained in Chinese too."""

from __future__ import annotations

from unit.controllers.sampledata.test_docs import ROOT, fields


def test_the_chinese_page_has_every_field() -> None:
    english = (ROOT / "docs" / "kinds" / "paddlejob.md").read_text(encoding="utf-8")
    chinese = (ROOT / "docs" / "paddlejob-fields.zh.md").read_text(encoding="utf-8")
    assert fields(chinese, heading="###") == fields(english, heading="##")
