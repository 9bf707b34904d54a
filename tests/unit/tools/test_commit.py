"""A record names the commit that it was made on, and says when there was more than that commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools import commit


def test_changes_other_than_of_records_are_marked(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        return subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    record = tmp_path / commit.RECORDS[0]
    record.parent.mkdir(parents=True)
    record.write_text("one")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    clean = git("rev-parse", "--short", "HEAD").strip()
    assert commit.name(tmp_path) == clean
    record.write_text("two")
    assert commit.name(tmp_path) == clean
    (tmp_path / "source.py").touch()
    assert commit.name(tmp_path) == f"{clean}+"


def test_every_record_is_there() -> None:
    assert [path for path in commit.RECORDS if not (commit.ROOT / path).is_file()] == []
