"""docs/differences.md from differences.yaml: `python tests/cluster/differences_page.py` writes it."""

from __future__ import annotations

from pathlib import Path

import yaml

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "differences.md"

HEADER = """\
<!-- Written by `python tests/cluster/differences_page.py` from tests/cluster/differences.yaml. -->

# Where the embedded API differs from kube-apiserver

The conformance suite runs against both, and where it leaves room for two answers, this page says so. A comparison of
the two servers, side by side, finds every difference in kinds and objects that remains; a test fails for one that is
not explained here, and for an explanation that nothing needs any more (`make test-cluster`).

Authorisation has its own comparison: generated Roles, ClusterRoles, bindings, users and requests, judged by both
servers, must have the same verdicts ([how](design/cluster-fixture.md#generated-requests)). Where a row below says that
the embedded server does less, only who may ask is compared there.
"""
SECTIONS = (("Kinds and objects", True), ("Behaviour", False))
TABLE = "\n## {}\n\n| Difference | Why |\n|---|---|\n"


def page() -> str:
    entries = yaml.safe_load((HERE / "differences.yaml").read_text())
    text = HEADER
    for title, compared in SECTIONS:
        chosen = (entry for entry in entries if ("lines" in entry) == compared)
        rows = (f"| {entry['what']} | {' '.join(str(entry['why']).split())} |\n" for entry in chosen)
        text += TABLE.format(title) + "".join(rows)
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
