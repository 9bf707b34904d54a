"""Which moment a list shows, and which combinations of options are refused."""

from __future__ import annotations

import pytest

from paddlecloud.kube.errors import BadRequest, Invalid
from paddlecloud.local.apiserver.http.list_options import check_list_options, exact_revision, revision_of


@pytest.mark.parametrize(
    ("query", "limit", "exact"),
    [
        ({}, 0, None),
        ({"resourceVersion": "0"}, 5, None),
        ({"resourceVersion": "7"}, 0, None),
        ({"resourceVersion": "7"}, 5, 7),
        ({"resourceVersion": "7", "resourceVersionMatch": "NotOlderThan"}, 5, None),
        ({"resourceVersion": "7", "resourceVersionMatch": "Exact"}, 0, 7),
        ({"continue": "x"}, 5, None),
    ],
)
def test_the_moment_of_a_list(query: dict[str, str], limit: int, exact: int | None) -> None:
    assert exact_revision(query, limit=limit) == exact


@pytest.mark.parametrize("version", ["x", "-1", "1.0", "٣"])
def test_a_version_is_a_number(version: str) -> None:
    with pytest.raises(BadRequest, match="resourceVersion"):
        revision_of({"resourceVersion": version})


def test_a_page_has_its_version_already() -> None:
    with pytest.raises(BadRequest, match="not allowed when using continue"):
        exact_revision({"continue": "x", "resourceVersion": "7"}, limit=1)


@pytest.mark.parametrize(
    ("query", "watch", "why"),
    [
        ({"resourceVersionMatch": "Exact"}, False, "forbidden unless resourceVersion is provided"),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, False, 'forbidden for resourceVersion "0"'),
        ({"resourceVersionMatch": "Odd", "resourceVersion": "1"}, False, "Unsupported value"),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "1", "continue": "x"},
            False,
            "when continue is provided",
        ),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "1"}, True, "forbidden for watch unless"),
        ({"sendInitialEvents": "true"}, True, "requires setting resourceVersionMatch to NotOlderThan"),
        ({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}, False, "forbidden for list"),
    ],
)
def test_contradictions_are_refused(query: dict[str, str], watch: bool, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        check_list_options(query, watch=watch)
