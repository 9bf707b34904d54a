"""Where stores are: names that clients, the controller and the embedded platform agree on."""

from __future__ import annotations

VARIABLE = "PADDLECLOUD_MODEL_STORE"
"""The address of the store, where it is not that of the embedded platform."""
FOLDER = "models"
"""The store of the embedded platform, in its data directory."""
