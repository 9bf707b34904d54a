"""The embedded server judges generated requests as a real kube-apiserver did when its verdicts were recorded."""

from __future__ import annotations

import os

from harness import Target
from verdicts import recorded
from verdicts.comparison import differences
from verdicts.judge import judge
from verdicts.stage import custom_kinds, verdicts


async def test_requests_are_judged_as_kube_apiserver_judged_them(embedded: Target) -> None:
    kept = recorded.load()
    async with judge(embedded.kubeconfig) as ours, custom_kinds(ours):
        judged = await verdicts(ours, kept.worlds, f"r{os.getpid()}")
    compact = [[recorded.compacted(verdict) for verdict in each] for each in judged]
    found = differences(kept.worlds, kept.verdicts, compact)
    assert not found, "\n".join([f"{len(found)} verdicts differ from {kept.server}:", *map(str, found)])
