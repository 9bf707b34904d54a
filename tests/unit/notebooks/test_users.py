"""One-time tokens and passwords: digests alone are kept, tokens end and are used once, wrong tries are slowed down."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from paddlecloud.notebooks import passwords, users
from paddlecloud.notebooks.tries import FREE, LONGEST, MOST_NAMES, Tries

NOW = 1_000_000.0
PASSWORD = "correct horse battery"


def invited(name: str = "ada", token: str = "one-time") -> users.Users:
    return users.invited({}, name, token, NOW)


def test_a_token_gives_a_password_once_and_neither_is_kept() -> None:
    known = invited()
    result = users.redeemed(known, "ada", " One-Time ", PASSWORD, NOW + 1)
    assert result.users is not None, result.refusal
    assert users.accepts(result.users, "ada", PASSWORD)
    kept = json.dumps(users.written(result.users, None)) + json.dumps(users.written(known, None))
    decoded = base64.b64decode(users.written(result.users, None)["data"]["users.json"]).decode()
    assert PASSWORD not in kept + decoded
    assert "one-time" not in kept + decoded
    again = users.redeemed(result.users, "ada", "one-time", PASSWORD, NOW + 2)
    assert again.users is None
    assert again.wrong


@pytest.mark.parametrize(
    ("name", "token", "password", "later", "why", "wrong"),
    [
        ("ada", "other", PASSWORD, 1, "not the one-time token", True),
        ("bob", "one-time", PASSWORD, 1, "not the one-time token", True),
        ("ada", "", PASSWORD, 1, "not the one-time token", True),
        ("ada", "one-time", PASSWORD, users.LASTS, "has ended", False),
        ("ada", "one-time", "short", 1, "at least 10 characters", False),
        ("ada", "one-time", "aaaaaaaaaaaa", 1, "easy to guess", False),
        ("ada", "one-time", "x" * 257, 1, "at most 256", False),
    ],
)
def test_a_token_that_is_wrong_or_over_and_a_poor_password_are_refused(
    name: str, token: str, password: str, later: float, why: str, wrong: bool
) -> None:
    result = users.redeemed(invited(), name, token, password, NOW + later)
    assert result.users is None
    assert why in result.refusal
    assert result.wrong is wrong


def test_nobody_signs_in_before_a_password_is_chosen_nor_under_another_name() -> None:
    known = invited()
    assert not users.accepts(known, "ada", "")
    assert not users.accepts(known, "ada", "one-time"), "the token is no password"
    chosen = users.redeemed(known, "ada", "one-time", PASSWORD, NOW).users or {}
    assert not users.accepts(chosen, "ada", PASSWORD + "x")
    assert not users.accepts(chosen, "bob", PASSWORD)
    assert not users.accepts(users.without(chosen, "ada"), "ada", PASSWORD)


def test_a_new_token_leaves_the_password_until_another_is_chosen() -> None:
    chosen = users.redeemed(invited(), "ada", "one-time", PASSWORD, NOW).users or {}
    again = users.invited(chosen, "ada", "second", NOW)
    assert users.accepts(again, "ada", PASSWORD)
    assert users.redeemed(again, "ada", "one-time", PASSWORD, NOW).users is None
    other = users.redeemed(again, "ada", "second", "another password", NOW).users or {}
    assert not users.accepts(other, "ada", PASSWORD)
    assert users.accepts(other, "ada", "another password")


@pytest.mark.parametrize("name", ["", "Ada", "-a", "a-", "a b", "a/b", "a" * 64, "é", "a\n"])
def test_names_that_nobody_can_have_are_refused(name: str) -> None:
    with pytest.raises(users.UsersError, match="is no name of a user"):
        users.invited({}, name, "t", NOW)


def test_the_number_of_users_is_bounded() -> None:
    full = {f"u{number}": users.LocalUser() for number in range(users.MOST)}
    with pytest.raises(users.UsersError, match="2000 users already"):
        users.invited(full, "ada", "t", NOW)
    assert users.invited(full, "u1", "t", NOW)["u1"].token


@pytest.mark.parametrize("data", ["?", base64.b64encode(b"[1]").decode(), base64.b64encode(b'{"a": 1}').decode()])
def test_a_secret_that_somebody_changed_is_named(data: str) -> None:
    with pytest.raises(users.UsersError, match="Secret notebook-users cannot be read"):
        users.read({"data": {"users.json": data}})


def test_what_is_written_is_read_and_keeps_the_version_of_the_secret() -> None:
    known = invited()
    first = users.written(known, None)
    assert users.read(first) == known
    kept: dict[str, Any] = {**first, "metadata": {**first["metadata"], "resourceVersion": "7"}}
    assert users.written({}, kept)["metadata"]["resourceVersion"] == "7"
    assert users.read({}) == users.read(None) == {}


@pytest.mark.parametrize("kept", ["", "scrypt:2:1:1$AAAA$AAAA", "plain$cGFzcw==$cGFzcw==", "scrypt:16384:8:1$?$?"])
def test_a_digest_of_another_kind_matches_nothing(kept: str) -> None:
    assert not passwords.matches("", kept)
    assert not passwords.matches("pass", kept)


def test_tokens_differ_and_are_long() -> None:
    made = {passwords.make_token() for _ in range(100)}
    assert len(made) == 100
    assert {len(token) for token in made} == {20}


def test_after_three_wrong_tries_the_wait_doubles_up_to_a_minute_for_that_name_alone() -> None:
    tries, now, waits = Tries(), NOW, []
    for _ in range(12):
        waits.append(tries.wait("ada", now))
        now += waits[-1]
        tries.wrong("ada", now)
    assert waits == [0.0] * FREE + [1, 2, 4, 8, 16, 32, LONGEST, LONGEST, LONGEST]
    assert tries.wait("bob", now) == 0
    tries.right("ada")
    assert tries.wait("ada", now) == 0


def test_what_is_remembered_of_strangers_is_bounded() -> None:
    tries = Tries()
    for number in range(MOST_NAMES + 10):
        tries.wrong(f"u{number}", NOW)
    assert len(tries._wrong) == MOST_NAMES
