"""Unfinished lists: who loses one when there are too many."""

from __future__ import annotations

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import SECRETS
from paddlecloud.local.apiserver.auth.authentication import User
from paddlecloud.local.apiserver.objects.listing import UNFINISHED, Pages, Selection
from paddlecloud.local.store.record import ObjectAddress, Record

RECORDS = [Record(ObjectAddress("/secrets", "ns", name), 1, b"{}") for name in "abc"]


def secrets_of(user: str) -> Selection:
    return Selection(user, "", SECRETS, None, "", "")


@pytest.mark.parametrize(
    ("name", "impersonator"),
    [("ghost-{}", User("alice")), ("system:serviceaccount:alice:ghost-{}", None)],
    ids=["impersonated users", "service accounts"],
)
def test_given_lists_of_made_up_users_then_nobody_else_loses_one(name: str, impersonator: User | None) -> None:
    pages = Pages(FakeClock())
    mine = pages.first(secrets_of("admin"), RECORDS, 1, 1).token
    ghosts = [secrets_of(name.format(number)) for number in range(2 * UNFINISHED)]
    theirs = [pages.first(ghost, RECORDS, 1, 1, impersonator=impersonator).token for ghost in ghosts]
    assert pages.next(secrets_of("admin"), mine, 1).records == RECORDS[1:2]
    assert pages.next(ghosts[-1], theirs[-1], 1).records == RECORDS[1:2]
    with pytest.raises(errors.Expired):
        pages.next(ghosts[0], theirs[0], 1)
