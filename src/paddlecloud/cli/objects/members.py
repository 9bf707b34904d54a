"""The pods of an object in the words of the command line; `sdk.members` finds them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from paddlecloud.cli.failures import UsageError
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import Object
from paddlecloud.sdk import members
from paddlecloud.sdk.members import Member as Member
from paddlecloud.sdk.members import member as member


def members_of(session: Session, obj: Object) -> list[Member]:
    """Ordered as people count: workers first, then the other roles, each by rank."""
    return session.api.do(members.members_of(session.api.client, obj))


def choose(found: Iterable[Member], *, ranks: str | None, everything: bool) -> list[Member]:
    """Rank 0 unless asked otherwise. Ranks are those of the workers; `everything` includes all roles."""
    return members.choose(found, ranks=None if ranks is None else parse_ranks(ranks), everything=everything)


def lives_of(session: Session, obj: Object) -> list[Member]:
    """Also those that are gone and whose logs are not."""
    return session.api.do(members.lives_of(session.api.client, obj))


def parse_ranks(text: str) -> frozenset[int]:
    """`0,3-5` → {0, 3, 4, 5}."""
    ranks: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part)
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise UsageError(f'"{text}" is not a list of ranks', why="write 0, 0,3 or 0,3-5", next="--rank 0,3-5")
        ranks.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return frozenset(ranks)
