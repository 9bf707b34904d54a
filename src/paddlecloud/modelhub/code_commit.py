"""The git commit of the folder that a program was started from, read from the folder itself: images rarely have git."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
STATUS_SECONDS = 10.0


def of_folder(folder: Path) -> dict[str, str]:
    """`commit`, and `commit-changed` where git is there and finds tracked files changed; nothing outside of a clone."""
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            commit = _head(place / ".git")
            return {"commit": commit, **_changed(place)} if commit else {}
    return {}


def _head(git: Path) -> str:
    try:
        if git.is_file():  # a worktree or a submodule: the file says where the rest is
            git = (git.parent / git.read_text().partition("gitdir:")[2].strip()).resolve()
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref:"):
            return head if _COMMIT.fullmatch(head) else ""
        common = git
        if (git / "commondir").exists():
            common = (git / (git / "commondir").read_text().strip()).resolve()
        return _resolve(common, head.partition(":")[2].strip())
    except (OSError, ValueError):
        return ""


def _resolve(git: Path, name: str) -> str:
    if ".." in name.split("/") or not name.startswith("refs/"):
        return ""
    loose = git / name
    if loose.is_file():
        found = loose.read_text().strip()
        return found if _COMMIT.fullmatch(found) else ""
    packed = (git / "packed-refs").read_text().splitlines() if (git / "packed-refs").exists() else []
    lines = [line.split(" ", 1) for line in packed if line.endswith(f" {name}")]
    return next((commit for commit, rest in lines if rest == name and _COMMIT.fullmatch(commit)), "")


def _changed(folder: Path) -> dict[str, str]:
    git = shutil.which("git")
    if git is None:
        return {}
    command = [git, "-c", "core.fsmonitor=false", "-C", str(folder), "status", "--porcelain", "--untracked-files=no"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=STATUS_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return {"commit-changed": "yes"} if done.returncode == 0 and done.stdout.strip() else {}
