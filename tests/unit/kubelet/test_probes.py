"""When a probe's single results become a verdict."""

from __future__ import annotations

import pytest

from paddlecloud.local.kubelet.handlers import port_of
from paddlecloud.local.kubelet.probes import Verdict


@pytest.mark.parametrize(
    ("failures", "successes", "results", "verdicts"),
    [
        (3, 1, "+", [True]),
        (3, 1, "--", [None, None]),
        (3, 1, "---", [None, None, False]),
        (3, 1, "+--+--", [True, True, True, True, True, True]),
        (3, 1, "+---+", [True, True, True, False, True]),
        (1, 2, "+-+", [None, False, False]),
        (1, 2, "++", [None, True]),
    ],
)
def test_enough_of_the_same_in_a_row_decide(
    failures: int, successes: int, results: str, verdicts: list[bool | None]
) -> None:
    verdict = Verdict(failures, successes)
    seen = []
    for result in results:
        verdict.record(result == "+")
        seen.append(verdict.value)
    assert seen == verdicts


def test_a_port_may_be_named() -> None:
    container = {"ports": [{"name": "web", "containerPort": 80}]}
    assert (port_of(8080, container), port_of("8080", container), port_of("web", container)) == (8080, 8080, 80)
    with pytest.raises(ValueError, match="'db'"):
        port_of("db", container)
