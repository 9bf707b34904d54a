"""Builds of images on a cluster: the script that builders run, and the suites' builds as Tekton objects."""

from __future__ import annotations

from importlib import resources

BUILDER = "quay.io/buildah/stable"
"""An image with buildah, which builds without privileges and without a daemon."""


def script(name: str) -> str:
    """A script of this package, for a pod."""
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
