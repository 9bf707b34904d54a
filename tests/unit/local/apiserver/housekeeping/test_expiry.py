"""When an event is forgotten: an hour after it last happened, whatever its author says of the future."""

from __future__ import annotations

import pytest

from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.housekeeping.expiry import last_seen

CREATED, LATER, NOW = "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z", "2026-01-01T12:00:00Z"
NEVER = "9999-12-31T23:59:59Z"


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({}, CREATED),
        ({"lastTimestamp": LATER}, LATER),
        ({"eventTime": LATER}, LATER),
        ({"eventTime": CREATED, "series": {"lastObservedTime": LATER}}, LATER),
        ({"lastTimestamp": NEVER}, CREATED),
        ({"eventTime": NEVER}, CREATED),
        ({"series": {"lastObservedTime": NEVER}, "lastTimestamp": LATER}, LATER),
    ],
)
def test_the_latest_time_that_has_come_counts(fields: Object, seen: str) -> None:
    event = {"metadata": {"creationTimestamp": CREATED}, **fields}
    assert last_seen(event, parse_rfc3339(NOW)) == parse_rfc3339(seen)
