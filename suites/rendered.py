"""Recipes of the model suites that are checked in: made from `suites.yaml` by `make rendered`.

A test fails while one differs.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from paddlecloud.local.images.shipped import SUITES_FILE
from paddlecloud.local.images.suites import read_suites, recipes

PACKAGE = Path(__file__).parent / "src" / "paddlecloud_suites"


def files() -> dict[Path, str]:
    """Everything that is checked in, by where it lies."""
    found = read_suites(PACKAGE / SUITES_FILE)
    return {PACKAGE / "recipes" / folder / "image.yaml": _dump(body) for folder, body in recipes(found).items()}


def _dump(body: object) -> str:
    head = "# Made from suites.yaml by `make rendered`: change it there.\n"
    return head + yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=120)


if __name__ == "__main__":
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(PACKAGE.parents[1]))
