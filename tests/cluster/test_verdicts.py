"""Generated requests of generated users are judged alike by kube-apiserver and by the embedded server.

`PDC_VERDICTS` is the number of requests, `PDC_VERDICTS_SEED` makes others. Each request that is judged differently is
reduced to one line: roles, bindings and request => verdicts.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Callable

import pytest

from harness import Target
from verdicts import recorded
from verdicts.comparison import Difference, differences
from verdicts.generator import worlds
from verdicts.judge import Judge, judge
from verdicts.model import Verdict
from verdicts.shrink import shrunk
from verdicts.stage import custom_kinds, verdicts

pytestmark = [pytest.mark.core, pytest.mark.timeout(1800)]

CASES = int(os.environ.get("PDC_VERDICTS", "5000"))
SEED = int(os.environ.get("PDC_VERDICTS_SEED", "1"))
SHRUNK = 8
"""Differences that are reduced; one mistake often shows in many requests."""


async def test_both_servers_judge_generated_requests_alike(
    server: Target,
    embedded: Target,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    record_property("requests", CASES)
    made, prefix, began = list(worlds(SEED, CASES)), f"v{os.getpid()}", time.monotonic()
    async with judge(server.kubeconfig) as real, judge(embedded.kubeconfig) as ours, custom_kinds(real, ours):
        judged, ours_judged = await asyncio.gather(*(verdicts(each, made, prefix) for each in (real, ours)))
        with capsys.disabled():
            codes = Counter(verdict.code for each in judged for verdict in each).most_common()
            listed = ", ".join(f"{count} × {code}" for code, count in codes)
            print(f"\n{CASES} requests of seed {SEED} in {time.monotonic() - began:.0f} s: {listed}")
        found = differences(made, judged, ours_judged)
        assert not found, "\n".join(
            [f"{len(found)} of {CASES} requests, seed {SEED}:", *await _reduced(found, real, ours)]
        )
        if os.environ.get("PDC_VERDICTS_RECORD"):
            version = json.loads((await real.send("GET", "/version")).body)["gitVersion"]
            whole = list(worlds(SEED, recorded.CASES))
            recorded.save(version, SEED, whole, judged[: len(whole)])
    if SEED == 1 and CASES >= recorded.CASES:
        kept = recorded.load()
        again = [[recorded.compacted(verdict) for verdict in each] for each in judged[: len(kept.worlds)]]
        assert again == kept.verdicts, f"{recorded.FILE.name} has other verdicts than this server: record them again"


async def _reduced(found: list[Difference], real: Judge, ours: Judge) -> list[str]:
    """A line each, for one of every sort."""
    sorts: dict[tuple[Verdict, Verdict, str, str], Difference] = {}
    for each in found:
        sorts.setdefault((each.real, each.embedded, each.case.method, each.case.content_type), each)
    lines = []
    for number, each in enumerate(sorts.values()):
        smallest = await shrunk(each, real, ours, f"v{os.getpid()}r{number}") if number < SHRUNK else None
        lines.append(str(smallest or each))
    return lines
