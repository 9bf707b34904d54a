"""How many requests of one tenant are in progress at a time."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from paddlecloud.kube import errors
from paddlecloud.local.apiserver.auth.authentication import ADMIN, User
from paddlecloud.local.apiserver.http.shares import Shares


def account(namespace: str, name: str) -> User:
    return User(f"system:serviceaccount:{namespace}:{name}")


def test_the_accounts_of_a_namespace_share_and_leave_others_theirs() -> None:
    shares = Shares(2)
    with ExitStack() as busy:
        for name in ("a", "b"):
            busy.enter_context(shares.of(account("theirs", name)))
        with pytest.raises(errors.TooManyRequests, match="system:serviceaccount:theirs has 2 requests in progress"):
            busy.enter_context(shares.of(account("theirs", "c")))
        for user in (account("mine", "a"), User("jane"), ADMIN, ADMIN, ADMIN):
            busy.enter_context(shares.of(user))
    with shares.of(account("theirs", "c")):
        pass
