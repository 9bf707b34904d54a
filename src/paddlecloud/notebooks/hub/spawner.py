"""A notebook as a pod of its user's tenant, with the tenant's account and quota.

KubeSpawner does the work. What is ours: which namespace and account, decided on the Profiles at every start and looked
at again while the server runs; and that the server's token is in a Secret, since people with the role view read pods
with all of their variables.
"""

from __future__ import annotations

import html
import json
import secrets
from typing import Any

from kubernetes_asyncio.client.rest import ApiException
from kubespawner import KubeSpawner
from kubespawner.objects import make_owner_reference
from tornado import web

from paddlecloud.kube.errors import ApiError
from paddlecloud.notebooks.hub.tenants import tenants
from paddlecloud.notebooks.membership import Membership, NotAMember, choose

TENANT = "tenant"
_TOKENS = ("JUPYTERHUB_API_TOKEN", "JPY_API_TOKEN")


class TenantSpawner(KubeSpawner):  # type: ignore[misc]
    user_options: dict[str, Any]

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._token_name = ""
        self.after_pod_created_hook = TenantSpawner._store_token

    # What its user chooses

    async def get_options_form(self) -> str:
        """Empty, so that the server starts at once, where there is nothing to choose."""
        found = await self._memberships()
        if not found:
            raise web.HTTPError(403, _reason(found, "", self.user.name))
        if self.user_options.get(TENANT, "") not in {"", *(one.tenant for one in found)}:
            self._forget_choice()
        of_profiles = str(await super().get_options_form() or "")
        if len(found) == 1 and not of_profiles:
            return ""
        return _tenants_form(found, self.user_options.get(TENANT, "")) + of_profiles

    def run_options_from_form(self, form: dict[str, list[str]]) -> dict[str, Any]:
        return {**super().run_options_from_form(form), **_wanted(form)}

    async def load_user_options(self) -> None:
        """Where and as whom: asked again at every start, whatever the options say."""
        await super().load_user_options()
        wanted = self.user_options.get(TENANT, "")
        try:
            member = choose(await self._memberships(), wanted if isinstance(wanted, str) else "", self.user.name)
        except NotAMember as error:
            self._forget_choice()
            raise web.HTTPError(403, str(error)) from error
        self.namespace, self.service_account = member.tenant, member.account
        self._pvc_exists = False  # the claim of another tenant says nothing of this one's
        self.dns_name = self.dns_name_template.format(namespace=self.namespace, name=self.pod_name)
        self._token_name = f"{self.pod_name}-{secrets.token_hex(4)}"

    def _forget_choice(self) -> None:
        """JupyterHub starts a server with the options of the last time, also where they were refused."""
        self.user_options = {name: value for name, value in self.user_options.items() if name != TENANT}
        self.orm_spawner.user_options = self.user_options
        self.db.commit()

    async def _memberships(self) -> list[Membership]:
        return await tenants().of(self.user.name, [group.name for group in self.user.groups])

    # The token

    def get_env(self) -> dict[str, Any]:
        env: dict[str, Any] = super().get_env()
        for name in _TOKENS:
            if name in env:
                env[name] = {"valueFrom": {"secretKeyRef": {"name": self._token_name, "key": "token"}}}
        return env

    async def _store_token(self, pod: dict[str, Any]) -> None:
        """It belongs to the pod and goes with it."""
        owner = make_owner_reference(self.pod_name, pod["metadata"]["uid"])
        meta = {"name": self._token_name, "ownerReferences": [owner]}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"token": self.api_token}}
        await self.api.create_namespaced_secret(self.namespace, body)

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "service_account": self.service_account}

    def load_state(self, state: dict[str, Any]) -> None:
        super().load_state(state)
        self.service_account = state.get("service_account", self.service_account)

    # What may go wrong

    async def _make_create_pod_request(self, pod: Any, request_timeout: float) -> bool:
        try:
            return bool(await super()._make_create_pod_request(pod, request_timeout))
        except ApiException as error:
            raise _explained(error) from error

    async def _make_create_pvc_request(self, pvc: Any, request_timeout: float) -> bool:
        try:
            return bool(await super()._make_create_pvc_request(pvc, request_timeout))
        except ApiException as error:
            raise _explained(error) from error

    async def _start_reflector(self, kind: str, reflector_class: Any, replace: bool = False, **given: Any) -> Any:
        """One that could not begin or gave up, as after a tenant was closed for a while, is replaced: KubeSpawner would
        use it for good."""
        known = self.reflectors.get(self._get_reflector_key(kind))
        loaded = known is not None and known.first_load_future.done()
        broken = loaded and (known.watch_task is None or known.watch_task.done())
        return await super()._start_reflector(kind, reflector_class, replace=replace or broken, **given)

    async def poll(self) -> int | None:
        """A server whose user lost the tenant is stopped: its pod has the tenant's account."""
        try:
            found = await self._memberships()
        except ApiError as error:
            self.log.warning("cannot list tenants: %s", error.message)
            return await super().poll()  # type: ignore[no-any-return]
        if any((one.tenant, one.account) == (self.namespace, self.service_account) for one in found):
            return await super().poll()  # type: ignore[no-any-return]
        self.log.warning("%s has lost its role in tenant %s: the server is stopped", self.user.name, self.namespace)
        try:
            await self.stop(now=True)
        except ApiException as error:
            self.log.warning("cannot delete pod %s/%s: %s", self.namespace, self.pod_name, error.reason)
        return 0


def _wanted(form: dict[str, list[str]]) -> dict[str, str]:
    return {TENANT: form[TENANT][0]} if form.get(TENANT) else {}


def _reason(found: list[Membership], wanted: str, user: str) -> str:
    try:
        choose(found, wanted, user)
    except NotAMember as error:
        return str(error)
    return ""


def _tenants_form(found: list[Membership], before: str) -> str:
    def row(number: int, one: Membership) -> str:
        chosen = one.tenant == before or (number == 0 and before not in {each.tenant for each in found})
        name = html.escape(one.tenant, quote=True)
        field = f'<input type="radio" name="{TENANT}" value="{name}"{" checked" if chosen else ""}>'
        what = "" if one.role == "edit" else " (you may look, and change nothing)"
        return f'<label class="form-control">{field} {name}{what}</label>'

    rows = "".join(row(number, one) for number, one in enumerate(found))
    return f"<fieldset><legend>Tenant</legend>{rows}</fieldset>"


def _explained(error: Any) -> Any:
    """JupyterHub shows people this text; without it they read of an internal error."""
    try:
        message = json.loads(error.body)["message"]
    except (TypeError, ValueError, KeyError):
        message = error.reason
    error.jupyterhub_message = f"The API server refused it: {message}"
    return error
