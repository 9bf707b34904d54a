"""Who signs in: people of one machine with a password of their own, or people of an OIDC provider.

Names are not changed on the way: RBAC compares them exactly, and two names that differ in case may be two people.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from jupyterhub.auth import Authenticator
from jupyterhub.orm import new_token
from oauthenticator.generic import GenericOAuthenticator
from tornado import web

from paddlecloud.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from paddlecloud.kube.resource import SECRETS, Object
from paddlecloud.notebooks import names, users
from paddlecloud.notebooks.hub.tenants import client
from paddlecloud.notebooks.passwords import LEAST
from paddlecloud.notebooks.tries import Tries

HASHES_AT_ONCE = 2
"""Digests take memory and a core each; others wait."""

FORM = """
<form action="{{ authenticator_login_url }}" method="post" role="form">
  <div class="auth-form-header"><h1>Sign in</h1></div>
  <div class="auth-form-body m-auto">
    {% if login_error %}<p class="login_error">{{ login_error | e }}</p>{% endif %}
    <input type="hidden" name="_xsrf" value="{{ xsrf }}" />
    <label for="username_input">Username:</label>
    <input id="username_input" class="form-control" name="username" value="{{ (username or '') | e }}" type="text"
      autocapitalize="off" autocorrect="off" autocomplete="username" autofocus />
    <label for="password_input">Password:</label>
    <input id="password_input" class="form-control" name="password" type="password" autocomplete="current-password" />
    <details class="mt-3">
      <summary>First time here, or a new password</summary>
      <label for="token_input">One-time token (<code>pdc notebooks user NAME</code> shows it):</label>
      <input id="token_input" class="form-control" name="token" type="password" autocomplete="one-time-code" />
      <label for="new_password_input">New password, at least {{ least }} characters:</label>
      <input id="new_password_input" class="form-control" name="new_password" type="password"
        autocomplete="new-password" />
    </details>
    <input id="login_submit" type="submit" class="btn btn-jupyter form-control mt-3" value="Sign in" />
  </div>
</form>
"""


class LocalAuthenticator(Authenticator):  # type: ignore[misc]
    """Names and digests are in the Secret `notebook-users`. Nobody is there unless the platform's owner said so."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._tries = Tries()
        self._hashing = asyncio.Semaphore(HASHES_AT_ONCE)

    def get_custom_html(self, base_url: str) -> str:
        return FORM.replace("{{ least }}", str(LEAST))

    def normalize_username(self, username: str) -> str:
        return username

    def validate_username(self, username: str) -> bool:
        return not users.name_problem(username)

    async def authenticate(self, handler: Any, data: dict[str, str]) -> str | None:
        name = data.get("username", "")
        if users.name_problem(name):
            return None
        wait = self._tries.wait(name, time.monotonic())
        if wait > 0:
            raise web.HTTPError(429, f"Too many wrong tries for this name. Try again in {wait:.0f} seconds.")
        self._tries.wrong(name, time.monotonic())  # until shown otherwise: others may come at the same time
        if data.get("token"):
            await self._redeem(handler, name, data["token"], data.get("new_password", ""))
        elif not await self._hashed(users.accepts, await _users(), name, data.get("password", "")):
            return None
        self._tries.right(name)
        return name

    async def _redeem(self, handler: Any, name: str, token: str, password: str) -> None:
        """Use a token up, and have everybody sign out who signed in with an earlier password."""
        secret = await _secret()
        result = await self._hashed(users.redeemed, users.read(secret), name, token, password, time.time())
        if result.users is None:
            if not result.wrong:
                self._tries.right(name)
            raise web.HTTPError(403, result.refusal)
        try:
            await client().update(SECRETS, users.written(result.users, secret))
        except (Conflict, AlreadyExists) as error:
            raise web.HTTPError(409, "The users were changed at this moment. Try again.") from error
        known = handler.find_user(name)
        if known is not None:
            known.orm_user.cookie_id = new_token()
            handler.db.commit()

    async def refresh_user(self, user: Any, handler: Any = None, **_: Any) -> bool:
        """Who was removed is signed out."""
        try:
            return user.name in await _users()
        except ApiError as error:
            self.log.warning("cannot read the users: %s", error.message)
            return True

    async def _hashed(self, work: Any, *arguments: Any) -> Any:
        async with self._hashing:
            return await asyncio.to_thread(work, *arguments)


class OidcAuthenticator(GenericOAuthenticator):  # type: ignore[misc]
    """Any OIDC provider; its groups are those of Profiles."""

    def normalize_username(self, username: str) -> str:
        return str(username)


async def _users() -> users.Users:
    return users.read(await _secret())


async def _secret() -> Object | None:
    """None where nobody was let in yet. The hub may get this Secret, and list none."""
    try:
        return await client().get(SECRETS, names.USERS, names.NAMESPACE)
    except NotFound:
        return None
