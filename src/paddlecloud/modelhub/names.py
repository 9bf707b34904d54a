"""Under which names the hub's server is found. Plain data."""

from __future__ import annotations

SERVICE = "modelhub"
"""The Service, in the namespace of the controllers."""
PORT = 8890
VARIABLE = "PADDLECLOUD_MODEL_HUB"
"""The address of the server, for clients: http(s)://HOST[:PORT]."""
TOKEN_VARIABLE = "PADDLECLOUD_MODEL_HUB_TOKEN"  # noqa: S105 - the name of a variable
"""A token or a read grant for it, where it is not that of the kubeconfig."""
