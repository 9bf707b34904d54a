"""docs/differences.md from differences.yaml: `python tests/cluster/differences_page.py` writes it."""

from __future__ import annotations

from pathlib import Path

import yaml

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "differences.md"

HEADER = """\
<!-- Written by `python tests/cluster/differences_page.py` from tests/cluster/differences.yaml. -->

# Where the embedded API differs from kube-apiserver

The conformance suite runs against both. A comparison of the two servers, side by side, finds every difference that
remains; a test fails for one that is not explained here, and for an explanation that nothing needs any more
(`make test-cluster`).

| Difference | Why |
|---|---|
"""


def page() -> str:
    entries = yaml.safe_load((HERE / "differences.yaml").read_text())
    rows = (f"| {entry['what']} | {' '.join(str(entry['why']).split())} |\n" for entry in entries)
    return HEADER + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page())
