"""Names that the hub, its objects, the tenant controller and the SDK share."""

from __future__ import annotations

NAMESPACE = "jhub"
"""Of hub and proxy on the embedded platform, as in JupyterHub's own instructions for Kubernetes."""
HUB = "hub"
"""The hub's Deployment, Service, ServiceAccount, and the Secret with what it made at random."""
PROXY, PROXY_API, PROXY_PUBLIC = "proxy", "proxy-api", "proxy-public"
USERS = "notebook-users"
"""The Secret with the people who may sign in on one machine; never a password, always its digest."""
USERS_KEY = "users.json"
HUB_PORT, PUBLIC_PORT, API_PORT = 8081, 8000, 8001
HUB_IMAGE, NOTEBOOK_IMAGE = "paddlecloud/jupyterhub", "paddlecloud/notebook"
CLAIM_PREFIX = "notebook-"
SETTINGS = "/etc/jupyterhub/settings.json"
"""In the hub's pod: `settings.HubSettings`."""
