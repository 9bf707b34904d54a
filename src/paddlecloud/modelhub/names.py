"""Names that clients, controllers and the embedded platform agree on: of the hub's server and of stores. Plain data."""

from __future__ import annotations

SERVICE = "modelhub"
"""The Service, in the namespace of the controllers."""
PORT = 8890
VARIABLE = "PADDLECLOUD_MODEL_HUB"
"""The address of the server, for clients: http(s)://HOST[:PORT]."""
TOKEN_VARIABLE = "PADDLECLOUD_MODEL_HUB_TOKEN"  # noqa: S105 - the name of a variable
"""A token or a read grant for it, where it is not that of the kubeconfig."""
STORE_VARIABLE = "PADDLECLOUD_MODEL_STORE"
"""The address of the store, where it is not that of the embedded platform."""
STORE_FOLDER = "models"
"""The store of the embedded platform, in its data directory."""
