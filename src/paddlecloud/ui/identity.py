"""Whose credentials a viewer brings: checked with the API server before they open a session."""

from __future__ import annotations

from dataclasses import replace

from paddlecloud.kube import access
from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config
from paddlecloud.kube.credentials import Credential, Static, bearer
from paddlecloud.kube.errors import Forbidden, NotFound
from paddlecloud.kube.http import HttpTransport
from paddlecloud.ui.sessions import Identity


async def of_token(transport: HttpTransport, server: Config, token: str) -> Identity:
    """`server` says where the API is, without credentials. Raises `Unauthorized` for a token that is not accepted."""
    source = Static(Credential(authorization=bearer(token)))
    client = Client(transport.acting_as(source), field_manager="pdc")
    return Identity(await _name(client), replace(server, source=source, headers=()), client)


async def of_config(config: Config, client: Client, flags: tuple[str, ...]) -> Identity:
    """Of the user of a kubeconfig, who runs the dashboard with the rights of its context."""
    return Identity(await _name(client), config, client, flags)


async def _name(client: Client) -> str:
    try:
        return await access.user_name(client)
    except (NotFound, Forbidden):  # clusters before 1.28 do not say who one is
        await client.raw("GET", "/version")
        return ""
