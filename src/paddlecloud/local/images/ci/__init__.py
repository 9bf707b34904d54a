"""Builds of images on a cluster: the script that builders run, and the suites' builds as Tekton objects."""

from __future__ import annotations

from importlib import resources
from urllib.parse import urlsplit

BUILDER = "quay.io/buildah/stable"
"""An image with buildah, which builds without privileges and without a daemon."""


def script(name: str) -> str:
    """A script of this package, for a pod."""
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def index_settings(url: str) -> dict[str, str]:
    """Variables of pip for an index of packages; it trusts one without TLS only by name."""
    if not url:
        return {}
    parts = urlsplit(url)
    trusted = {"PIP_TRUSTED_HOST": parts.hostname} if parts.scheme == "http" and parts.hostname else {}
    return {"PIP_INDEX_URL": url, **trusted}
